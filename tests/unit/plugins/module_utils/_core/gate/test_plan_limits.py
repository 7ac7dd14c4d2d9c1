# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A limit's tolerance, and the limit that a plan without any gets."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan


def plan(*points, **more):
    return GatePlan.from_dict({"points": list(points), **more})


def limits(made):
    return [[(one.name, round(one.value, 6)) for one in point.limits] for point in made.points]


def test_a_tolerance_lowers_a_minimum_and_raises_a_maximum():
    made = plan(
        {
            "concurrency": 1,
            "min_output_tokens_per_s": {"limit": 35.6, "tolerance_ratio": 0.05},
            "max_ttft_p90_ms": {"limit": 400, "tolerance_ratio": 0.1},
            "min_ratio_to_promoted": 0.9,
        }
    )
    assert limits(made) == [[("min_output_tokens_per_s", 33.82), ("max_ttft_p90_ms", 440.0), ("min_ratio_to_promoted", 0.9)]]
    assert GatePlan.from_dict(made.as_dict()) == made


@pytest.mark.parametrize(
    "raw", [{"limits": 3}, {"limit": 3, "tolerance_ratio": 0.6}, {"tolerance_ratio": 0.1}, {"limit": "3"}, 1.01]
)
def test_a_limit_that_cannot_be_meant_is_refused(raw):
    with pytest.raises(InferopsError):
        plan({"concurrency": 1, "min_roofline_ratio": raw})


def test_without_any_limit_the_first_deploy_is_held_to_the_bound_and_later_ones_to_the_promoted():
    made = plan({"concurrency": 1}, {"concurrency": 16})
    assert limits(made.with_default_limits((), tp_size=1)) == [[("min_roofline_ratio", 0.6)], [("min_roofline_ratio", 0.2)]]
    assert limits(made.with_default_limits((), tp_size=8)) == [[("min_roofline_ratio", 0.15)], [("min_roofline_ratio", 0.2)]]
    assert limits(made.with_default_limits((1, 16), tp_size=1)) == [[("min_ratio_to_promoted", 0.95)]] * 2
    assert limits(made.with_default_limits((1,), tp_size=1))[1] == [("min_roofline_ratio", 0.2)]


def test_a_plan_that_names_limits_or_wants_none_is_left_as_it_is():
    named = plan({"concurrency": 1, "max_ttft_p50_ms": 100}, {"concurrency": 8})
    assert named.with_default_limits((), tp_size=1) is named
    observed = plan({"concurrency": 1}, default_limits="none")
    assert observed.with_default_limits((1,), tp_size=1) is observed
    with pytest.raises(InferopsError, match="default_limits"):
        plan({"concurrency": 1}, default_limits="never")
