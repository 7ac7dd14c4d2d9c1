# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan refuses what it does not know, by name and with the nearest known name."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan_limits import LIMITS


def plan_with(**point):
    return {"points": [{"concurrency": 1, **point}]}


@pytest.mark.parametrize(
    ("raw", "named", "nearest"),
    [
        (plan_with(min_output_token_per_s=30), "min_output_token_per_s", "min_output_tokens_per_s"),
        (plan_with(max_ttft_p95_ms=30), "max_ttft_p95_ms", "max_ttft_p99_ms"),
        ({**plan_with(), "input_token": 3}, "input_token", "input_tokens"),
        ({**plan_with(), "require": {"decode_graph_ratio": 1}}, "decode_graph_ratio", "decode_graph_pass_ratio"),
        ({**plan_with(), "sanity": {"expected": "x"}}, "expected", "expect"),
    ],
)
def test_unknown_key_is_an_error_that_names_the_nearest(raw, named, nearest):
    with pytest.raises(InferopsError) as caught:
        GatePlan.from_dict(raw)
    assert named in caught.value.what
    assert nearest in (caught.value.details["do"] + caught.value.details["why"])


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"points": []},
        {"points": [{"min_output_tokens_per_s": 3}]},
        plan_with(min_output_tokens_per_s="fast"),
        plan_with(min_output_tokens_per_s=True),
        {"points": [{"concurrency": 0}]},
        {"points": [{"concurrency": True}]},
        {**plan_with(), "confidence": 95},
        {**plan_with(), "min_seconds_per_point": 20, "max_seconds_per_point": 10},
        {**plan_with(), "seed": -1},
        [],
    ],
)
def test_wrong_values_are_refused(raw):
    with pytest.raises(InferopsError):
        GatePlan.from_dict(raw)


def test_seed_zero_is_a_seed_and_a_limit_of_zero_is_a_limit():
    plan = GatePlan.from_dict({**plan_with(min_goodput_ratio=0), "seed": 0})
    assert plan.seed == 0
    assert plan.points[0].limits[0].value == 0


def test_every_limit_of_the_design_is_known():
    plan = GatePlan.from_dict(plan_with(**dict.fromkeys(LIMITS, 1)))
    assert {limit.name for limit in plan.points[0].limits} == set(LIMITS)
    assert GatePlan.from_dict(plan.as_dict()) == plan
