# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Causes from evidence: what must be named, and as many healthy servers that must not be accused."""

from __future__ import annotations

import copy
import json
import random
import re

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.diagnosis import CODES, diagnose

EVIDENCE = {"num_layers": 61, "pp_size": 8, "tp_size": 1}


def card(index, **changes):
    power = {"mean": 85.0, "max": 99.0, "limit": 600.0}
    return {
        "index": index,
        "stage": index,
        "power_w": power,
        "utilization_ratio": 0.3,
        "throttle": [],
        "throttled_ratio": 0.0,
    } | changes


def run(speeds, *, graph=1.0, cards=None, resolved=None, bounds=None, tpot=None, limits=()):
    """A result with output tok/s by concurrency and a share of graph passes (None: the engine counts nothing)."""
    bounds = {1: 48.5, 8: 388.0, 16: 573.0} if bounds is None else bounds
    points = [
        {
            "concurrency": level,
            "output_tokens_per_s": speed,
            "bound_tokens_per_s": bounds.get(level),
            "tpot_ms": {"p50": tpot if tpot is not None and level == 1 else 1000 * level / speed},
            "cached_tokens_ratio": 0.0,
            "limits": [{"metric": "min_output_tokens_per_s"}] if level in limits else [],
            "verdict": "pass" if level in limits else "observed",
        }
        for level, speed in speeds.items()
    ]
    passes = None if graph is None else {"graph": round(10_000 * graph), "eager": round(10_000 * (1 - graph))}
    return {
        "points": points,
        "gpus": [card(index) for index in range(8)] if cards is None else cards,
        "engine": {"graph_passes": {"decode": passes} if passes else {}, "resolved": resolved or {}},
    }


def codes(result, evidence=None):
    return [item["code"] for item in diagnose(result, EVIDENCE if evidence is None else evidence)]


BUSY = [card(index, power_w={"mean": 330.0, "limit": 600.0}, utilization_ratio=0.96) for index in range(8)]
FILLED = {1: 42.0, 8: 310.0, 16: 480.0}


def test_the_slow_run_of_the_story_names_its_causes_with_numbers_r7():
    found = {item["code"]: item for item in diagnose(run({1: 24.7, 8: 95.6}, graph=0.0), EVIDENCE)}
    assert list(found) == ["GATE-LAUNCH", "GATE-FILL", "GATE-POWER"]
    launch = found["GATE-LAUNCH"]["evidence"]
    assert launch["gap_ms"] == pytest.approx(40.5 - 20.6, abs=0.1)
    low, high = launch["launch_us_low_high"]
    assert 10 < low < high < 20
    assert found["GATE-FILL"]["evidence"]["scaling"] == pytest.approx(3.87, abs=0.01)
    assert found["GATE-FILL"]["evidence"]["filled_tokens_per_s"] == pytest.approx(197.6)
    assert "85 W of 600 W" in found["GATE-POWER"]["message"]
    for item in found.values():
        assert item["do"] and json.dumps(item["evidence"])


def test_launches_come_before_the_scheduler_while_the_host_has_to_launch_every_kernel():
    def first(graph):
        result = run({1: 24.7, 16: 130.0}, graph=graph)
        result["points"][1]["engine"] = {"readings": 30, "stage_host_ratio": [0.48] * 8, "stage_forward_ratio": [0.4] * 8}
        return [code for code in codes(result) if code in ("GATE-LAUNCH", "GATE-SCHEDULER")]

    assert first(0.0) == ["GATE-LAUNCH", "GATE-SCHEDULER"]
    assert first(1.0) == ["GATE-SCHEDULER"]


def test_a_scheduler_that_is_alike_on_every_stage_names_none_of_them():
    def said(ratios):
        result = run({1: 35.6, 16: 156.0})
        result["points"][1]["engine"] = {"readings": 30, "stage_host_ratio": ratios, "stage_forward_ratio": [0.4] * 8}
        return next(item for item in diagnose(result, EVIDENCE) if item["code"] == "GATE-SCHEDULER")

    assert "of the time of every stage, passes" in said([0.41, 0.40] * 4)["message"]
    assert "stage 5 (card 5" in said([0.2] * 5 + [0.6] + [0.2] * 2)["message"]


def test_the_advice_for_a_poor_fill_follows_how_requests_share_micro_batches():
    def advice(size):
        result = run({1: 35.6, 8: 113.0})
        seen = {"e2e_ms": 18_000.0, "queue_ms": 0.0, "decode_batch": size}
        result["points"][1] |= {"output_tokens": {"mean": 256}, "engine": seen}
        return next(item for item in diagnose(result, EVIDENCE) if item["code"] == "GATE-FILL")["do"]

    assert "lower pp_max_micro_batch_size" in advice(4.0)
    assert "pp_max_micro_batch_size" not in advice(1.0) and "spread over micro-batches already" in advice(1.0)


def test_the_fixed_run_passes_and_still_says_what_is_left():
    found = {item["code"]: item for item in diagnose(run({1: 35.6, 16: 156.4}, limits=(1, 16)), EVIDENCE)}
    assert "GATE-LAUNCH" not in found and "GATE-EAGER" not in found
    assert found["GATE-HEADROOM"]["evidence"]["bound_ratio"] == pytest.approx(156.4 / 573, abs=0.001)
    assert "3.7 ×" in found["GATE-HEADROOM"]["message"]


def test_a_healthy_pipeline_with_async_depth_0_is_not_accused():
    assert codes(run(FILLED, cards=BUSY, resolved={"pp_async_batch_depth": 0, "pp_size": 8})) == []


def test_a_badly_filled_pipeline_with_perfect_flags_is_accused():
    perfect = {"pp_async_batch_depth": 8, "pp_size": 8, "disable_cuda_graph": False}
    assert "GATE-FILL" in codes(run({1: 42.0, 8: 130.0}, resolved=perfect))


@pytest.mark.parametrize("cards", [None, []])
def test_a_pipeline_that_scales_is_not_called_empty_whatever_the_cards_say(cards):
    assert "GATE-FILL" not in codes(run(FILLED, cards=cards))


def test_cards_that_work_flat_out_are_not_called_empty():
    assert "GATE-FILL" not in codes(run({1: 42.0, 8: 130.0}, cards=BUSY))


@pytest.mark.parametrize("evidence", [{"pp_size": 1}, {}])
def test_without_a_pipeline_there_is_no_fill(evidence):
    assert "GATE-FILL" not in codes(run({1: 42.0, 8: 60.0}), evidence)


@pytest.mark.parametrize(
    ("graph", "resolved", "accused"),
    [
        (0.0, {"disable_cuda_graph": False}, True),  # counters beat flags
        (1.0, {"disable_cuda_graph": True}, False),
        (None, {"disable_cuda_graph": True}, True),  # an engine without counters: its own resolved value
        (None, {"cuda_graph_config": {"decode": {"backend": "disabled"}}}, True),
        (None, {"disable_cuda_graph": True, "cuda_graph_config": {"decode": {"backend": "full"}}}, False),
        (None, {}, False),
    ],
)
def test_launch_bound_rests_on_what_ran(graph, resolved, accused):
    assert ("GATE-LAUNCH" in codes(run({1: 24.7}, graph=graph, resolved=resolved))) is accused


def test_eager_passes_alone_do_not_make_it_launch_bound():
    assert "GATE-LAUNCH" not in codes(run({1: 45.0}, graph=0.0))
    assert "GATE-EAGER" in codes(run({1: 45.0}, graph=0.0))


def test_gaps_between_arrivals_are_no_waits_of_the_server():
    result = run({1: 35.6, 16: 156.4})
    seldom = copy.deepcopy(result["points"][0]) | {"rate": 0.05, "output_tokens_per_s": 12.8}
    idle = [card(index, utilization_ratio=0.04) for index in range(8)]
    crowd = copy.deepcopy(result["points"][1]) | {"rate": 0.5, "concurrency": 12, "output_tokens_per_s": 60.0}
    fed = result | {"points": [seldom | {"gpus": idle}, crowd], "gpus": idle}
    assert codes(fed) == []
    closed = fed | {"points": [point | {"rate": None} for point in fed["points"]]}
    assert set(codes(closed)) >= {"GATE-SLOW-HOP", "GATE-FILL"}, "the same figures of closed loops do accuse"


def test_without_a_bound_low_power_is_the_second_witness():
    assert "GATE-LAUNCH" in codes(run({1: 24.7}, graph=0.0, bounds={}))
    assert "GATE-LAUNCH" not in codes(run({1: 24.7}, graph=0.0, bounds={}, cards=BUSY))
    assert "GATE-LAUNCH" not in codes(run({1: 24.7}, graph=0.0, bounds={}, cards=[]))


def test_the_required_graph_share_is_the_plan_s():
    nearly = run(FILLED, graph=0.97, cards=BUSY)
    assert codes(nearly) == ["GATE-EAGER"]
    assert codes(nearly, EVIDENCE | {"require": {"decode_graph_pass_ratio": 0.95}}) == []
    assert "GATE-EAGER" in codes(run({1: 24.7}, graph=0.0), EVIDENCE | {"require": {"decode_graph_pass_ratio": 0.95}})


def changed(result, index, **changes):
    result = copy.deepcopy(result)
    result["gpus"][index] |= changes
    return result


@pytest.mark.parametrize(
    ("changes", "accused"),
    [
        ({"throttle": ["hw_thermal_slowdown"], "throttled_ratio": 0.4}, True),
        ({"throttle": ["hw_thermal_slowdown"], "throttled_ratio": 0.01}, False),
        ({"throttle": ["gpu_idle"], "throttled_ratio": 0.0}, False),
        ({"throttle": ["sw_power_cap"]}, False),
        ({"throttle": ["sw_power_cap"], "power_w": {"mean": 590.0, "limit": 600.0}}, True),
        ({"throttle": None, "throttled_ratio": None}, False),
    ],
)
def test_throttling(changes, accused):
    assert ("GATE-THROTTLE" in codes(changed(run(FILLED, cards=BUSY), 3, **changes))) is accused


def test_what_held_clocks_back_is_said_in_words_and_each_card_is_in_the_evidence():
    many = copy.deepcopy(run(FILLED, cards=BUSY))
    for place in range(8):
        clock = {"mean": 900, "max": 2430}
        many["gpus"][place] |= {"uuid": f"GPU-{place}0000000-{'1' * 20}", "sm_clock_mhz": clock, "throttled_ratio": 0.0}
    for place in (1, 2):
        many["gpus"][place] |= {"throttle": ["hw_slowdown", "hw_thermal_slowdown"], "throttled_ratio": 0.5}
    found = next(item for item in diagnose(many, EVIDENCE) if item["code"] == "GATE-THROTTLE")
    assert "by a hardware slowdown and by heat on 2 of 8 cards (stages 1, 2)" in found["message"]
    assert "for no reason that NVML gives on 6 of 8 cards (stages 0, 3–7)" in found["message"]
    assert "_" not in found["message"] and "GPU-" not in found["message"], "the full list is in the evidence"
    assert "cooling" in found["do"] and "nvidia-smi -rgc" in found["do"]
    assert found["evidence"]["cards"][f"card 1 (GPU-10000000-{'1' * 20}, stage 1)"] == ["hw_slowdown", "hw_thermal_slowdown"]
    assert len(found["evidence"]["cards"]) == 8


def test_one_slow_stage_is_found_and_a_heavier_one_is_not():
    busy = [card(index, utilization_ratio=0.4, power_w={"mean": 250.0, "limit": 600.0}) for index in range(8)]
    assert "GATE-SLOW-STAGE" not in codes(run(FILLED, cards=busy))
    slow = changed(run(FILLED, cards=busy), 3, utilization_ratio=0.95)
    assert next(item for item in diagnose(slow, EVIDENCE) if item["code"] == "GATE-SLOW-STAGE")["evidence"]["stage"] == 3
    last = changed(run(FILLED, cards=busy), 7, utilization_ratio=0.62)
    heavier = EVIDENCE | {"stage_read_bytes": [4.0] * 7 + [6.3]}
    assert "GATE-SLOW-STAGE" not in codes(last, heavier), "it also reads the head"


def test_low_power_with_fewer_requests_than_stages_is_expected():
    assert "GATE-POWER" not in codes(run({1: 42.0}))
    assert codes(run(FILLED)) == [], "a sign without a cause"
    assert codes(run({1: 42.0, 8: 130.0})) == ["GATE-FILL", "GATE-POWER"]


def test_cached_prompts_and_figures_above_the_bound_are_said_r77():
    cached = run(FILLED, cards=BUSY)
    cached["points"][1]["cached_tokens_ratio"] = 0.02
    assert codes(cached) == ["GATE-CACHED"]
    cached["points"][1]["cached_tokens_limit_ratio"] = 0.03  # a chat template that all share
    assert codes(cached) == []
    cached["points"][1]["cached_tokens_ratio"] = 0.009
    assert codes(cached) == []
    assert codes(run({1: 60.0}, cards=BUSY)) == ["GATE-ABOVE-BOUND"]


def test_nothing_measured_accuses_nobody():
    assert diagnose({}, {}) == []
    assert codes(run({}, graph=None, cards=[])) == []


def test_any_part_may_be_unknown_without_a_crash():
    whole, draw = run({1: 24.7, 8: 95.6, 16: 120.0}, graph=0.0, limits=(1,)), random.Random(1)

    def thinned(value):
        if isinstance(value, dict):
            return {key: thinned(item) for key, item in value.items() if draw.random() > 0.1}
        if isinstance(value, list):
            return [thinned(item) for item in value]
        return None if draw.random() < 0.15 else value

    for _round in range(300):
        json.dumps(diagnose(thinned(whole), thinned(EVIDENCE)))


def test_every_code_has_a_row_and_a_section_for_people(fixtures):
    text = (fixtures.parents[1] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(GATE-[A-Z0-9-]+)` \|", text, re.M))
    sections = set(re.findall("GATE-[A-Z0-9-]+", "".join(re.findall("^## .*$", text, re.M))))
    assert rows == sections == set(CODES)
