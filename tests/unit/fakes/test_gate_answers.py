# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate asks a fake engine that is fast and answers rightly, and then wrongly in one way at a time."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate

KIMI = ("--pp-size", "8", "--served-model-name", "kimi", "--enable-metrics", "--reasoning-parser", "kimi_k2")
PARSING = (*KIMI, "--tool-call-parser", "kimi_k2")
QUICK = {"input_tokens": 32, "output_tokens": 16, "min_seconds_per_point": 0.2, "max_seconds_per_point": 20, "stall_timeout_s": 8}


def no_cards():
    raise NoNvmlError("no NVML in this test")


def gate(running, folder, *, promoted=None, **correctness):
    points = [{"concurrency": 4, "min_output_tokens_per_s": 1}]

    plan = GatePlan.from_dict({**QUICK, "points": points, "correctness": correctness})
    return run_gate(running.url, plan, folder, open_nvml=no_cards, context=GateContext(promoted_result=promoted))


def said(result, text):
    return any(text in reason for reason in result["reasons"])


def test_a_good_server_passes_every_probe(start, tmp_path):
    running = start(*PARSING, timescale=50)
    result = gate(
        running, tmp_path / "out", graded={"min_accuracy": 0.95}, tool_calls=True, long_context={"input_tokens": 20_000}
    )
    assert result["verdict"] == "pass", result["reasons"]
    found = result["correctness"]
    assert (found["graded"]["right"], found["graded"]["items"], len(found["graded"]["kinds"])) == (200, 200, 9)
    assert (found["tool_calls"]["right"], found["tool_calls"]["items"]) == (10, 10)
    assert found["multi_turn"]["cached_tokens"] > 500
    assert found["long_context"]["input_tokens"] == pytest.approx(20_000, rel=0.05)
    assert json.loads((tmp_path / "out" / "result.json").read_text())["correctness"] == found


def test_by_default_the_quick_probes_alone_run_and_tool_calls_only_with_a_parser(start, tmp_path):
    assert set(gate(start(*PARSING, timescale=50), tmp_path / "a")["correctness"]) == {"multi_turn", "tool_calls"}
    plain = start(*KIMI, "--disable-radix-cache", timescale=50)
    result = gate(plain, tmp_path / "b")
    assert (result["verdict"], result["correctness"]) == ("pass", {})


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("broken_json", "the arguments of get_weather are no JSON"),
        ("wrong_name", "the function is 'functions.get_weather', not 'get_weather'"),
        ("as_text", "no call arrived, only text"),
    ],
)
def test_fast_and_right_but_tool_calls_malformed_fails(start, tmp_path, fault, reason):
    running = start(*PARSING, timescale=50, tool_calls=fault)
    result = gate(running, tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "tool calls: min_valid_ratio: limit 0.7, measured 0")
    assert said(result, reason), result["reasons"]
    running.control()
    assert gate(running, tmp_path / "again")["verdict"] == "pass"


def test_a_second_request_that_dies_in_the_prefix_cache_fails(start, tmp_path):
    running = start(*KIMI, timescale=50, cache_hit="crash")
    result = gate(running, tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "cached turns: the same request, whose beginning is in the prefix cache, failed: connection lost")


def test_another_answer_from_the_prefix_cache_fails(start, tmp_path):
    result = gate(start(*KIMI, timescale=50, cache_hit="wrong"), tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "once the prompt came from the cache")


def test_a_cache_that_is_never_hit_leaves_the_probe_open(start, tmp_path):
    running = start(*KIMI, timescale=50, cached_ratio=0.0)
    result = gate(running, tmp_path / "out")
    assert result["verdict"] == "inconclusive"
    assert said(result, "the prefix cache was not hit")
    assert gate(running, tmp_path / "off", multi_turn=False)["verdict"] == "pass"


def test_quality_is_held_to_a_figure_and_to_the_promoted_release(start, tmp_path):
    running = start(*KIMI, timescale=50)
    rule = {"items": 90, "min_ratio_to_promoted": 0.9}
    first = gate(running, tmp_path / "first", multi_turn=False, graded=rule)
    assert first["verdict"] == "inconclusive"
    assert said(first, "the promoted release has no score on these items")
    assert gate(running, tmp_path / "same", multi_turn=False, graded=rule, promoted=first)["verdict"] == "pass"
    other = {**rule, "items": 81}
    assert gate(running, tmp_path / "other", multi_turn=False, graded=other, promoted=first)["verdict"] == "inconclusive"
    running.control(wrong_answers=0.3)
    worse = gate(running, tmp_path / "worse", multi_turn=False, graded=rule, promoted=first)
    assert worse["verdict"] == "fail"
    assert said(worse, "graded set: min_ratio_to_promoted: limit 0.9")
    absolute = gate(running, tmp_path / "absolute", multi_turn=False, graded={"items": 90, "min_accuracy": 0.9})
    assert absolute["verdict"] == "fail"
    assert len(absolute["correctness"]["graded"]["wrong"]) == 5


def test_items_of_ones_own(start, tmp_path):
    running = start(*KIMI, timescale=50)
    own = tmp_path / "own.jsonl"
    own.write_text(
        '{"prompt": "Capital of France?", "answer": "Paris", "match": "contains"}\n\n{"prompt": "1 + 1", "answer": "2"}\n'
    )
    result = gate(running, tmp_path / "out", multi_turn=False, graded={"file": str(own), "min_accuracy": 0.3})
    assert (result["verdict"], result["correctness"]["graded"]["right"]) == ("pass", 2)
    own.write_text('{"prompt": "?"}\n')
    with pytest.raises(InferopsError, match="a line is not an item"):
        gate(running, tmp_path / "broken", graded={"file": str(own)})


def test_a_limit_that_is_ignored_is_cut_short_r15(start, tmp_path):
    """R15: the reply runs on; it is not waited for."""
    running = start(*KIMI, timescale=50, ignore_max_tokens=True)
    result = gate(running, tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "max_tokens"), result["reasons"]


def test_exclamation_marks_in_the_reasoning_alone_are_garbage_r55(start, tmp_path):
    result = gate(start(*KIMI, timescale=50, garbage=True), tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "sanity probe: the answer is garbage ('!!!!")


def test_green_without_tokens_ends_at_the_first_tokens_deadline_r59(start, tmp_path):
    result = gate(start(*KIMI, timescale=50, green_without_tokens=True), tmp_path / "out")
    assert result["verdict"] == "fail"
    assert said(result, "accepts but does not generate: no token within 8 s")


def test_a_first_token_later_than_allowed_fails_r59(start, tmp_path):
    result = gate(start(*KIMI, timescale=1), tmp_path / "out", max_first_token_s=0.01)
    assert result["verdict"] == "fail"
    assert said(result, "the first token came after")


def test_a_model_that_is_not_listed_is_not_judged_r65(start, tmp_path):
    running = start(*KIMI, timescale=50, models_empty=True)
    assert running.get("/health")[0] == 200
    with pytest.raises(InferopsError, match="does not serve any model"):
        gate(running, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["verdict"] == "inconclusive"
