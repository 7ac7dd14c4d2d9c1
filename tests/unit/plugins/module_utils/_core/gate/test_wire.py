# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The three endpoints: exact lengths at each, what is said when there are none, and what each tells."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.prompts import WORDS, PromptMaker
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import ServerSaidError, Trace
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.validity import cache_limit, check_cache
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from .paced_server import Pace
from .test_run import gate, said
from .test_verdict import plan

SLOW = {"ttft_s": 0.05, "itl_s": 0.002}


@pytest.mark.parametrize(
    ("endpoint", "pace"),
    [
        pytest.param("completions", Pace(**SLOW), id="token ids"),
        pytest.param("completions", Pace(**SLOW, token_ids=False), id="words"),
        pytest.param("generate", Pace(**SLOW), id="native, whole text in each event"),
        pytest.param("generate", Pace(**SLOW, incremental=True), id="native, new text alone"),
        pytest.param("chat", Pace(**SLOW, chat_overhead=6), id="chat with a template"),
        pytest.param("chat", Pace(**SLOW, reasoning=True), id="chat that reasons"),
        pytest.param("chat", Pace(**SLOW, running_usage=False, chat_overhead=14), id="hardly anything but template"),
    ],
)
def test_lengths_are_exact_at_every_endpoint(endpoint, pace, tmp_path):
    pace.text = "the quick brown fox jumps over a lazy dog "
    options = {"endpoint": endpoint, "sanity": {"prompt": "say something"}}
    result = gate(pace, tmp_path, options=options)
    assert result["verdict"] == "pass", result["reasons"]
    point = result["points"][0]
    assert point["input_tokens"]["mean"] == 16
    assert point["output_tokens"]["mean"] == 20
    assert point["output_tokens_per_s"] == pytest.approx(2 * 20 / (0.05 + 19 * 0.002), rel=0.25)
    assert result["plan"]["endpoint"] == endpoint
    loads = [body for body in pace.seen if body.get("ignore_eos") or "sampling_params" in body]
    assert {"prompt", "messages", "input_ids"} & set(loads[-1]) == {
        {"completions": "prompt", "chat": "messages"}.get(endpoint, "input_ids")
    }
    assert any("more are its template" in note for note in result["notes"]) == bool(pace.chat_overhead)
    # What is thought counts as output; the first token of the answer is another figure, and absent without one.
    assert (point["ttft_answer_ms"]["n"] == 0) == pace.reasoning
    assert point["ttft_ms"]["n"] > 0


def test_a_few_tokens_without_text_are_no_server_without_text(tmp_path):
    """Seen on the real engine: eight tokens of a model with random weights that were all parts of characters."""
    result = gate(Pace(**SLOW, odd={0: "mute"}), tmp_path, options={"endpoint": "chat"})
    assert result["verdict"] == "pass", result["reasons"]
    mute = gate(Pace(**SLOW, odd=dict.fromkeys(range(99), "mute")), tmp_path / "mute", options={"endpoint": "chat"})
    assert said(mute, "first load request: no text was delivered (20 tokens in usage)")


def test_a_template_longer_than_the_prompt_is_refused(tmp_path):
    with pytest.raises(InferopsError, match="a prompt of one word already holds 42 tokens, 16 are planned"):
        gate(Pace(**SLOW, chat_overhead=40), tmp_path, options={"endpoint": "chat"})


@pytest.mark.parametrize(
    ("endpoint", "pace", "reason"),
    [
        ("generate", Pace(**SLOW, native=False), "first load request: HTTP 404"),
        ("generate", Pace(**SLOW, fail_after=6), "HTTP 500"),
        ("chat", Pace(**SLOW, chat=False), "first load request: HTTP 400"),
        ("generate", Pace(**SLOW, hang_after=3), "stopped generating"),
    ],
)
def test_an_endpoint_that_does_not_serve_fails(endpoint, pace, reason, tmp_path):
    result = gate(pace, tmp_path, options={"endpoint": endpoint})
    assert result["verdict"] == "fail"
    assert said(result, reason), result["reasons"]


def test_a_request_that_the_engine_aborts_is_an_error():
    meta = {"finish_reason": {"type": "abort", "message": "out of memory"}, "prompt_tokens": 4, "completion_tokens": 1}
    with pytest.raises(ServerSaidError, match="out of memory"):
        Trace(planned_ns=0).take(json.dumps({"text": "a", "meta_info": meta}).encode(), 5)


def test_a_cached_template_is_no_cached_prompt():
    made = plan()
    assert check_cache(0.02, cache_limit(made, 0.0, None))
    assert check_cache(0.02, cache_limit(made, 10, None)) == []
    assert check_cache(0.04, cache_limit(made, 10, None))
    assert cache_limit(made, 2, 50) == pytest.approx(0.05)


@given(st.integers(0, 9), st.integers(0, 50), st.integers(1, 400), st.integers(300, 200_000))
def test_prompts_are_as_long_as_asked_made_from_the_seed_and_never_twice_the_same(seed, request, length, vocabulary):
    def maker(nonce="n"):
        return PromptMaker(seed=seed, nonce=nonce, input_tokens=length, vocab_size=vocabulary)

    ids = maker().prompt(0, request)
    assert len(ids) == length
    assert all(256 <= token < vocabulary for token in ids)
    assert ids == maker().prompt(0, request)
    words = maker()
    words.words = length
    assert len(words.prompt(0, request).split()) == length
    if length > 8 and vocabulary > 2000:
        others = [maker().prompt(1, request), maker().prompt(0, request + 1), maker("m").prompt(0, request)]
        assert ids not in others


def test_words_are_plain_and_each_there_once():
    assert len(set(WORDS)) == len(WORDS) > 200
    assert all(word.isalpha() and word.islower() and word.isascii() for word in WORDS)


TEXT = {"type": "string", "minLength": 1}
WHOLE = {"type": "integer", "minimum": 1}
SAMPLING = {"max_new_tokens": WHOLE, "temperature": {"type": "number"}, "ignore_eos": {"const": True}}
MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}, "content": TEXT},
        "required": ["role", "content"],
    },
}
BODIES = {
    "messages": {"properties": {"model": TEXT, "messages": MESSAGES, "max_tokens": WHOLE}, "required": ["model", "max_tokens"]},
    "prompt": {
        "properties": {"model": TEXT, "prompt": {"anyOf": [TEXT, {"type": "array", "items": WHOLE}]}, "max_tokens": WHOLE},
        "required": ["model", "max_tokens"],
    },
    "input_ids": {
        "properties": {
            "input_ids": {"type": "array", "items": WHOLE, "minItems": 1},
            "sampling_params": {"properties": SAMPLING, "required": list(SAMPLING)},
        },
        "required": ["sampling_params"],
    },
}


@pytest.mark.parametrize("endpoint", ["completions", "chat", "generate"])
def test_every_request_is_built_by_us_in_the_shape_the_server_takes_r98(endpoint, tmp_path):
    """R98: messages as a string. A question that is refused for its shape would say nothing about the model."""
    asked = {"graded": {"items": 9}, "tool_calls": {"items": 2}, "multi_turn": True, "long_context": {"input_tokens": 64}}
    pace = Pace(ttft_s=0.005, itl_s=0.0005)
    gate(pace, tmp_path / "asked", options={"endpoint": endpoint, "correctness": asked})
    gate(pace, tmp_path / "loaded", options={"endpoint": endpoint})
    assert sum(bool(body.get("ignore_eos") or "sampling_params" in body) for body in pace.seen) > 10
    kinds = Counter(next(key for key in BODIES if key in body) for body in pace.seen)
    assert kinds["messages"] >= 5
    for body in pace.seen:
        (kind,) = [key for key in BODIES if key in body]
        Draft202012Validator({"type": "object", **BODIES[kind]}).validate(body)


def test_zero_is_a_seed_of_prompts_and_of_words():
    made = [PromptMaker(seed=seed, nonce="n", input_tokens=32, vocab_size=9000) for seed in (0, 0, 1, 7)]
    ids = [tuple(maker.prompt(0, 3)) for maker in made]
    for maker in made:
        maker.words = 32
    words = [maker.prompt(0, 3) for maker in made]
    assert ids[0] == ids[1] and words[0] == words[1]
    assert len(set(ids)) == len(set(words)) == 3
