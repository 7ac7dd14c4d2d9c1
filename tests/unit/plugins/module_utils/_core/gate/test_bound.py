# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The bound beside a figure: what it says at 1 and at 16, what it refuses, what it rests on."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.bound import (
    check_reachable,
    mean_context,
    promoted_points,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.verdict import Yardsticks, judge_limits

from .traces import load_of


@pytest.fixture
def kimi(fixtures):
    config = json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8"))

    def made(**known):
        return GateContext(model_config=config, **{"tp_size": 1, "pp_size": 8, "bandwidth_gb_s": 1792} | known)

    return made


def plan(*points, **more):
    return GatePlan.from_dict({"points": list(points), **more})


def test_at_sixteen_the_serial_and_the_filled_pipeline_are_told_apart(kimi):
    told = kimi().bound(concurrency=16, context_tokens=0).as_dict()
    assert told["filled"] == "8 micro-batches of 2"
    assert (told["serial_tokens_per_s"], told["one_each_tokens_per_s"], told["filled_tokens_per_s"]) == (
        pytest.approx(155, abs=1),
        pytest.approx(434, abs=1),
        pytest.approx(642, abs=1),
    )
    assert "serial_tokens_per_s" not in kimi(tp_size=8, pp_size=1).bound(concurrency=16, context_tokens=0).as_dict()


def test_what_passes_and_could_be_more_is_said(kimi):
    bound = kimi(bandwidth_gb_s=1600).bound(concurrency=16, context_tokens=640)
    assert bound.headroom(156.4, "pass") == ("passes, but a filled pipeline (8 micro-batches of 2) would give up to 3.7 ×")
    assert bound.headroom(156.4, "fail") is None
    assert bound.headroom(0.9 * bound.tokens_per_s, "pass") is None
    alone = kimi(bandwidth_gb_s=1600).bound(concurrency=1, context_tokens=640)
    assert alone.headroom(35.6, "pass") == "passes, but the bound would give up to 1.4 ×"


def test_a_limit_above_the_bound_is_refused_and_says_on_what_grounds(kimi):
    check_reachable(plan({"concurrency": 1, "min_output_tokens_per_s": 48}), kimi(bandwidth_gb_s=1600))
    with pytest.raises(InferopsError, match="50 tok/s at concurrency 1 cannot be reached") as caught:
        check_reachable(plan({"concurrency": 1, "min_output_tokens_per_s": 50}), kimi(bandwidth_gb_s=1600))
    assert caught.value.details["where"] == "plan.points[0].min_output_tokens_per_s"
    assert "1600 GB/s per card, the value given for this edition" in caught.value.details["why"]
    check_reachable(plan({"concurrency": 1, "min_output_tokens_per_s": 50}), kimi(bandwidth_gb_s=None))


def test_measured_cards_win_over_the_edition_but_only_more_than_reading_could_give_is_refused(kimi):
    known = {"concurrency": 1, "context_tokens": 0}
    edition, measured = kimi(bandwidth_gb_s=1600), kimi(bandwidth_gb_s=1600, bandwidths_gb_s=[1400] * 8)
    assert measured.bound(**known).tokens_per_s == pytest.approx(edition.bound(**known).tokens_per_s * 1400 / 1600)
    assert measured.bound(**known).ceiling_tokens_per_s == pytest.approx(edition.bound(**known).tokens_per_s)
    assert kimi(bandwidth_gb_s=None, bandwidths_gb_s=[1400] * 8).bound(**known).ceiling_ratio == 1.1
    assert "measured by copies on the cards" in measured.assumptions()[0]
    assert kimi(bandwidths_gb_s=[1400] * 7).bandwidth() == 1792, "another number of cards than ranks tells nothing"


def test_one_slow_card_in_eight_lowers_the_bound_by_its_share(kimi):
    known = {"concurrency": 1, "context_tokens": 0}
    even = kimi(bandwidths_gb_s=[1600] * 8).bound(**known).tokens_per_s
    uneven = kimi(bandwidths_gb_s=[1600] * 7 + [800]).bound(**known).tokens_per_s
    assert uneven == pytest.approx(even * (7 + 0.5) / 8)
    split = {"partition": "7,7,7,8,8,8,8,8"}
    assert kimi(bandwidths_gb_s=[1600] * 7 + [800], **split).bound(**known).tokens_per_s < uneven


def test_a_promoted_figure_of_other_lengths_is_no_yardstick():
    made = plan({"concurrency": 1}, input_tokens=512, output_tokens=256)

    def old(inputs, outputs, ci=(34.0, 36.0)):
        point = {"concurrency": 1, "ci": ci and list(ci), "output_tokens_per_s": 35.0}
        return {"points": [{**point, "input_tokens": {"mean": inputs}, "output_tokens": {"mean": outputs}}]}

    assert promoted_points(old(512, 256), made) == [1]
    assert promoted_points(old(128, 256), made) == promoted_points(old(512, 24), made) == []
    assert promoted_points(old(512, 256, ci=None), made) == promoted_points(None, made) == []
    chat = plan({"concurrency": 1}, endpoint="chat")
    assert promoted_points(old(512, 256), chat) == []
    assert promoted_points({**old(512, 256), "plan": {"endpoint": "chat"}}, chat) == [1]
    assert mean_context(made) == 640


@pytest.mark.parametrize(("tokens_per_s", "verdict"), [(16, "fail"), (73, "pass")])
def test_a_known_bad_set_up_fails_where_no_limit_is_named_r71(kimi, tokens_per_s, verdict):
    """R71: 16 tok/s instead of 73 … 90 with an FP8 cache, tensor parallel over eight cards: refused on a first deploy, too."""
    context = kimi(tp_size=8, pp_size=1, bandwidth_gb_s=1600)
    made = plan({"concurrency": 1}).with_default_limits((), tp_size=8)
    gap_ms = 1000 / tokens_per_s
    load = load_of([[(gap_ms, [gap_ms] * 99)] * 5])
    against = Yardsticks(made, bound=context.bound(concurrency=1, context_tokens=mean_context(made)))
    (judged,) = judge_limits(made.points[0], load, against)
    assert judged.verdict == verdict
    named = plan({"concurrency": 1, "min_output_tokens_per_s": 69})
    assert judge_limits(named.points[0], load, Yardsticks(named))[0].verdict == verdict
