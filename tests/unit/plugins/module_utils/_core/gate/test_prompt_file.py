# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prompts of a file: which lines are taken, in what order they come, that none is cached by accident, and what is said of it."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.compare import compare_results
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.prompt_file import FilePrompts, read_prompts
from hypothesis import given
from hypothesis import strategies as st

from .paced_server import Pace
from .test_run import gate, said

PACE = {"ttft_s": 0.02, "itl_s": 0.001}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


def written(folder, lines, name="prompts.jsonl"):
    path = folder / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


def loads(pace):
    return [body for body in pace.seen if body.get("ignore_eos") or "sampling_params" in body]


def dealt(prompts, count, *, seed=0, nonce="n", fresh=False):
    source = FilePrompts(prompts, seed=seed, nonce=nonce, fresh=fresh)
    return [source.prompt(0, number) for number in range(count)]


def test_lines_of_text_and_of_json(tmp_path):
    assert read_prompts(written(tmp_path, ["one {two}", "", '{"three"}'], "a.txt"), "completions") == ("one {two}", '{"three"}')
    lines = [{"prompt": "one", "id": 7}, '"two\\nlines"', "", {"messages": HELLO}]
    assert read_prompts(written(tmp_path, lines), "chat") == ("one", "two\nlines", tuple(HELLO))


@pytest.mark.parametrize(
    ("line", "endpoint", "what"),
    [
        pytest.param("{", "chat", "is not JSON", id="half an object"),
        pytest.param({"prompt": 3}, "chat", "is not a prompt", id="a number"),
        pytest.param({"prompt": " "}, "chat", "is not a prompt", id="nothing but space"),
        pytest.param({"text": "x"}, "chat", "is not a prompt", id="another key"),
        pytest.param([1, 2], "chat", "is not a prompt", id="a list"),
        pytest.param({"prompt": "x", "messages": HELLO}, "chat", "is not a prompt", id="both"),
        pytest.param({"messages": "Hello"}, "chat", "is not a prompt", id="R98 messages as a string"),
        pytest.param({"messages": []}, "chat", "is not a prompt", id="R98 no messages"),
        pytest.param({"messages": [{"role": "user"}]}, "chat", "is not a prompt", id="R98 a message without content"),
        pytest.param({"messages": HELLO}, "completions", "can only be sent to chat", id="messages elsewhere"),
    ],
)
def test_a_line_that_cannot_be_sent_is_refused_by_number_before_anything_is_sent(line, endpoint, what, tmp_path):
    path = written(tmp_path, [{"prompt": "fine"}, line])
    pace = Pace(**PACE)
    with pytest.raises(InferopsError, match=what) as caught:
        gate(pace, tmp_path / "out", options={"endpoint": endpoint, "prompts": {"file": str(path)}})
    assert caught.value.details["where"] == f"{path}:2"
    assert pace.seen == []


@pytest.mark.parametrize(("content", "what"), [(None, "cannot be read"), (b"\xff\xfe", "cannot be read"), (b"\n \n", "is empty")])
def test_a_file_that_is_none_is_refused(content, what, tmp_path):
    path = tmp_path / "prompts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InferopsError, match=what):
        read_prompts(path, "chat")


@given(st.integers(0, 5), st.integers(1, 30), st.integers(1, 4))
def test_all_are_sent_before_any_comes_again_in_an_order_of_the_seed(seed, count, passes):
    prompts = tuple(map(str, range(count)))
    sent = dealt(prompts, count * passes, seed=seed)
    for start in range(0, len(sent), count):
        assert sorted(sent[start : start + count]) == sorted(prompts)
    assert sent == dealt(prompts, count * passes, seed=seed)
    if count > 10:
        assert sent != dealt(prompts, count * passes, seed=seed + 1)


def test_zero_is_a_seed():
    prompts = tuple(map(str, range(40)))
    assert dealt(prompts, 40, seed=0) != list(prompts)
    assert len({tuple(dealt(prompts, 40, seed=seed)) for seed in (0, 1, 7)}) == 3


def test_a_mark_makes_each_prompt_one_that_no_cache_holds_r77():
    both = ("same", tuple(HELLO))
    first, again = dealt(both, 20, fresh=True), dealt(both, 20, nonce="m", fresh=True)
    begins = [one if isinstance(one, str) else one[0]["content"] for one in first + again]
    assert len({begin[:4] for begin in begins}) == 40
    # Real engines cache single tokens (page_size 1): what all marks begin with would come from the cache.
    assert len({begin[0] for begin in begins}) > 20
    assert all(begin.endswith((": same", ": Be brief.")) for begin in begins)
    assert all(one[1:] == tuple(HELLO[1:]) for one in first if not isinstance(one, str))


@pytest.mark.parametrize("endpoint", ["completions", "chat", "generate"])
def test_prompts_of_a_file_are_the_load(endpoint, tmp_path):
    path = written(tmp_path, [{"prompt": f"tell me of the number {number} and of its neighbours"} for number in range(9)])
    pace = Pace(**PACE)
    result = gate(pace, tmp_path / "out", options={"endpoint": endpoint, "prompts": {"file": str(path)}})
    assert result["verdict"] == "pass", result["reasons"]
    assert result["prompts"]["count"] == 9
    # Ten words and the mark, each two tokens to this server; 16 were planned for generated prompts.
    assert result["points"][0]["input_tokens"]["mean"] == 22
    assert any("prompts are the 9 of the plan's file" in note for note in result["notes"])
    sent = [str(body.get("prompt") or body.get("text") or body["messages"][0]["content"]) for body in loads(pace)]
    told = Counter(text.partition(": ")[2] for text in sent if ": " in text)
    assert len(told) == 9
    assert max(told.values()) - min(told.values()) <= 1
    assert len(set(sent) - {"a"}) == sum(told.values())


def test_messages_are_sent_as_they_are(tmp_path):
    path = written(tmp_path, [{"messages": HELLO}])
    pace = Pace(**PACE)
    gate(pace, tmp_path / "out", options={"endpoint": "chat", "prompts": {"file": str(path), "fresh": False}})
    assert [body["messages"] for body in loads(pace)].count(HELLO) > 5


def test_the_cached_share_is_said_and_judged(tmp_path):
    """Without a mark a shared beginning comes from the cache: seen in every report, and no pass unless the plan allows it."""
    path = written(tmp_path, ["tell me something about the sea"], "prompts.txt")
    options = {"prompts": {"file": str(path), "fresh": False}}
    result = gate(Pace(**PACE, cached_tokens=6), tmp_path / "a", options=options)
    assert result["verdict"] == "inconclusive"
    assert said(result, "50.0% of the prompt tokens came from the prefix cache")
    allowed = {**options, "correctness": {"max_cached_tokens_ratio": 0.6}}
    result = gate(Pace(**PACE, cached_tokens=6), tmp_path / "b", options=allowed)
    assert result["verdict"] == "pass", result["reasons"]
    assert result["points"][0]["cached_tokens_ratio"] == 0.5
    for name in ("report.html", "report.md"):
        assert "50 % of the prompts cached" in (tmp_path / "b" / name).read_text()


def test_the_chat_template_around_them_may_be_cached(tmp_path):
    path = written(tmp_path, ["tell me something about the sea"], "prompts.txt")
    options = {"endpoint": "chat", "prompts": {"file": str(path)}}
    result = gate(Pace(**PACE, cached_tokens=6, chat_overhead=7), tmp_path, options=options)
    assert result["verdict"] == "pass", result["reasons"]


def test_results_on_other_prompts_are_not_compared(tmp_path):
    made = []
    for name, line in (("a.txt", "tell me of the sea"), ("b.txt", "tell me of the sky")):
        options = {"prompts": {"file": str(written(tmp_path, [line], name))}}
        made.append(gate(Pace(**PACE), tmp_path / name[0], options=options))
    made.append(gate(Pace(**PACE), tmp_path / "c", options={"input_tokens": 16}))
    assert any("prompts" in line for line in compare_results(made[0], made[1])["refusals"])
    assert any("prompts" in line for line in compare_results(made[0], made[2])["refusals"])
    assert compare_results(made[0], made[0])["comparable"]


def test_the_bound_is_reckoned_with_the_lengths_that_were_sent(tmp_path, fixtures):
    config = json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8"))
    context = GateContext(model_config=config, tp_size=1, pp_size=8, bandwidth_gb_s=1600)
    path = written(tmp_path, ["tell me something about the sea at night please"], "prompts.txt")
    points = [{"concurrency": 2}]
    plans = [{"prompts": {"file": str(path)}, "input_tokens": 100_000}, {"input_tokens": 20}]
    bounds = [
        gate(Pace(**PACE), tmp_path / str(at), points, options={**plan, "default_limits": "none"}, context=context)
        for at, plan in enumerate(plans)
    ]
    first, second = (result["points"][0]["bound_tokens_per_s"] for result in bounds)
    assert first == second > 0
