# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Token events from bytes: any cut of the stream gives the same events, and chunks sum to usage."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import ServerSaidError, SseSplitter, Trace
from hypothesis import given
from hypothesis import strategies as st


def payload(**event):
    return json.dumps(event).encode()


@given(
    st.lists(st.text(min_size=1, max_size=5), max_size=6),
    st.lists(st.integers(0, 200), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_where_the_reads_fall_does_not_matter(words, cuts, line, ascii_only):
    """Comments, other fields, both line ends, characters cut in two, several events in one read."""
    events = [f"event: token{line}data: {json.dumps(word, ensure_ascii=ascii_only)}{line}{line}" for word in words]
    data = (f": keep-alive{line}{line}" + f"id: 1{line}".join(events)).encode()
    splitter, got, last = SseSplitter(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        got += splitter.feed(data[last:cut])
        last = max(last, min(cut, len(data)))
    assert [json.loads(item) for item in got] == words


def test_data_lines_of_one_event_belong_together_and_the_last_empty_line_may_be_missing():
    splitter = SseSplitter()
    assert splitter.feed(b'data: {"a":\ndata: 1}\n\ndata:[DONE]\n') == [b'{"a":\n1}']
    assert splitter.close() == [b"[DONE]"]
    assert splitter.close() == []


def test_reasoning_counts_as_output_and_the_first_answer_is_kept_apart():
    trace = Trace(planned_ns=0)
    assert trace.take(payload(choices=[{"delta": {"role": "assistant", "content": ""}}]), 1) == 0
    assert trace.take(payload(choices=[{"delta": {"reasoning_content": "hm"}}]), 2) == 1
    assert trace.take(payload(choices=[{"delta": {"content": "yes"}}]), 3) == 1
    assert (trace.first_ns, trace.first_answer_ns, trace.end_ns) == (2, 3, 3)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.booleans())
def test_chunks_sum_to_usage_with_and_without_a_running_count(sizes, running):
    trace, sent = Trace(planned_ns=0), 0
    for moment, size in enumerate(sizes):
        sent += size
        usage = {"usage": {"prompt_tokens": 3, "completion_tokens": sent}} if running else {}
        trace.take(payload(choices=[{"text": "x"}], **usage), moment)
    trace.take(payload(choices=[], usage={"prompt_tokens": 3, "completion_tokens": sent}), 99)
    trace.settle()
    assert trace.received_tokens == sent
    if running:
        assert [count for _, count in trace.chunks] == sizes


def test_tokens_without_text_join_the_next_text():
    trace = Trace(planned_ns=0)
    trace.take(payload(choices=[{"text": ""}], usage={"completion_tokens": 1}), 1)
    trace.take(payload(choices=[{"text": "é"}], usage={"completion_tokens": 2}), 2)
    assert list(trace.chunks) == [[2, 2]]


def test_an_error_inside_the_stream_is_not_a_token():
    with pytest.raises(ServerSaidError, match="boom"):
        Trace(planned_ns=0).take(payload(error={"message": "boom"}), 1)


@pytest.mark.parametrize("incremental", [False, True])
def test_the_native_endpoint_tells_its_text_whole_or_in_parts(incremental):
    trace, said = Trace(planned_ns=0), ""
    for moment, piece in enumerate(["a", "b", "a", "ab"], start=1):
        said = piece if incremental else said + piece
        meta = {"prompt_tokens": 7, "completion_tokens": moment, "cached_tokens": 3}
        assert trace.take(payload(text=said, meta_info=meta), moment) == 1
    assert (trace.text, trace.input_tokens, trace.output_tokens, trace.cached_tokens) == ("abaab", 7, 4, 3)


@pytest.mark.parametrize("garbage", [b"{", b'{"choices": []} {"choices": []}', b"[]", b"\xff"])
def test_an_event_that_is_not_one_json_object_is_an_error(garbage):
    with pytest.raises(ValueError):
        Trace(planned_ns=0).take(garbage, 1)


def test_the_frame_of_a_chat_stream_is_no_token():
    """Role and reason come in chunks of their own (recorded on 0.5.23); a chunk of a token whose text is not whole yet counts."""
    one = Trace(planned_ns=0)
    deltas = [{"role": "assistant", "content": ""}, {"content": "a"}, {"content": ""}, {"reasoning_content": None}]
    for at, delta in enumerate(deltas):
        choice = {"index": 0, "delta": delta, "finish_reason": "length" if at == 3 else None}
        one.take(json.dumps({"choices": [choice]}).encode(), at)
    assert (one.events, len(one.chunks), one.finish_reason) == (2, 1, "length")
    plain = Trace(planned_ns=0)
    plain.take(b'{"choices": [{"index": 0, "text": "", "finish_reason": "length"}]}', 0)
    assert plain.events == 1
