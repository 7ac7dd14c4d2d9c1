# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Laws of figures and verdicts that hold for any samples."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.load import PointLoad
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.metrics import (
    e2e_ms,
    good,
    itl_ms,
    latency,
    pooled,
    tpot_ms,
    ttft_ms,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan_limits import SHARES, Limit
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.throughput import throughput
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.verdict import (
    FAIL,
    INCONCLUSIVE,
    PASS,
    Validity,
    Yardsticks,
    decided,
    judge_limits,
    point_verdict,
    run_verdict,
)
from hypothesis import given
from hypothesis import strategies as st

from .traces import bound_of, load_of, trace

CYCLE = st.tuples(st.floats(1, 500), st.lists(st.floats(0.1, 100), min_size=1, max_size=6))
CYCLES = st.integers(3, 6).flatmap(
    lambda rounds: st.lists(st.lists(CYCLE, min_size=rounds, max_size=rounds), min_size=1, max_size=4)
)


def plan(**limits):
    return GatePlan.from_dict({"points": [{"concurrency": 1, **limits}]})


def judged(load, **limits):
    made = plan(**limits)
    lines = judge_limits(made.points[0], load, Yardsticks(made))
    return point_verdict(lines, Validity())[0]


@given(CYCLE)
def test_e2e_is_ttft_plus_all_gaps(cycle):
    one = trace(7, *cycle)
    assert e2e_ms(one) == pytest.approx(ttft_ms(one) + sum(itl_ms(one)))
    assert tpot_ms(one) == pytest.approx((e2e_ms(one) - ttft_ms(one)) / (one.output_tokens - 1))


@given(CYCLES, st.floats(1, 2000), st.floats(1, 800), st.floats(1.01, 8))
def test_one_speed_up_never_turns_pass_into_fail(cycles, rate, ttft, factor):
    limits = {"min_output_tokens_per_s": rate, "max_ttft_p50_ms": ttft, "min_goodput_ratio": 0.2}
    faster = [[(first / factor, [gap / factor for gap in gaps]) for first, gaps in worker] for worker in cycles]
    before, after = judged(load_of(cycles), **limits), judged(load_of(faster), **limits)
    assert not (before == PASS and after == FAIL)


@given(st.integers(1, 8), st.sampled_from(["min_output_tokens_per_s", "max_ttft_p99_ms", "min_goodput_ratio"]), st.floats(0, 1e6))
def test_no_samples_never_pass(workers, name, value):
    empty = PointLoad(workers, [[] for _ in range(workers)], window_start_ns=0, window_end_ns=1)
    assert judged(empty, **{name: min(value, 1 if name in SHARES else 1e6)}) == INCONCLUSIVE
    assert run_verdict([], planned=1, wrong=False, doubtful=False) == INCONCLUSIVE
    assert run_verdict([PASS], planned=2, wrong=False, doubtful=False) == INCONCLUSIVE


@given(st.floats(20, 400), st.lists(st.floats(1, 40), min_size=2, max_size=20), st.integers(3, 9), st.integers(1, 4))
def test_throughput_of_equal_cycles_is_exact_whatever_the_phase(ttft, gaps, rounds, workers):
    load = load_of([[(ttft, gaps)] * rounds for _ in range(workers)])
    for index, stream in enumerate(load.streams):
        for one in stream:
            one.planned_ns += index * 3_000_000
            one.done_ns += index * 3_000_000
    rate = throughput(load, 0.95)
    assert rate.rounds == rounds
    assert rate.value == pytest.approx(workers * (len(gaps) + 1) / ((ttft + sum(gaps)) / 1000), rel=1e-4)
    assert rate.ci[0] <= rate.value <= rate.ci[1]


def test_a_limit_on_an_absent_percentile_is_inconclusive_and_says_why():
    made = plan(max_ttft_p99_ms=1e6)
    line = judge_limits(made.points[0], load_of([[(5, [1])] * 40]), Yardsticks(made))[0]
    assert (line.verdict, line.value, line.n) == (INCONCLUSIVE, None, 40)
    assert "p99 needs 100 samples" in line.text()
    enough = judge_limits(made.points[0], load_of([[(5, [1])] * 100]), Yardsticks(made))[0]
    assert enough.verdict == PASS


def test_far_below_the_limit_fails_even_without_whole_rounds():
    load = load_of([[(9000, [1000])]])
    load.drained = [load.streams[0].pop()]
    assert judged(load, min_output_tokens_per_s=30) == FAIL
    assert judged(load, min_output_tokens_per_s=0.3) == INCONCLUSIVE


def test_doubt_never_passes_and_never_fails_a_slow_figure():
    load = load_of([[(100, [10] * 9)] * 5])
    for limit in (1, 1000):
        made = plan(min_output_tokens_per_s=limit)
        lines = judge_limits(made.points[0], load, Yardsticks(made))
        assert point_verdict(lines, Validity(doubtful=["cards were throttled"]))[0] == INCONCLUSIVE
        assert point_verdict(lines, Validity(wrong=["garbage"]))[0] == FAIL


def test_ratios_need_their_yardstick():
    load = load_of([[(100, [10] * 9)] * 5])
    value = throughput(load, 0.95).value
    made = plan(min_roofline_ratio=0.4, min_ratio_to_promoted=0.95)
    old = {"points": [{"concurrency": 1, "output_tokens_per_s": value, "ci": [value * 0.99, value * 1.01]}]}
    assert [line.verdict for line in judge_limits(made.points[0], load, Yardsticks(made))] == [INCONCLUSIVE, INCONCLUSIVE]
    known = judge_limits(made.points[0], load, Yardsticks(made, bound=bound_of(2 * value), promoted=old))
    assert [line.verdict for line in known] == [PASS, PASS]
    assert known[0].value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("limits", "rounds", "enough"),
    [
        pytest.param({"min_ratio_to_promoted": 0.95}, 5, True, id="nothing to judge against"),
        pytest.param({"min_ratio_to_promoted": 0.95}, 2, False, id="nothing to judge against, no figure yet"),
        pytest.param({"min_ratio_to_promoted": 0.95, "min_output_tokens_per_s": 1}, 5, True, id="the other limit is clear"),
        pytest.param({"min_ratio_to_promoted": 0.95, "max_ttft_p99_ms": 500}, 5, False, id="the other limit is open"),
        pytest.param({"max_ttft_p99_ms": 500}, 5, False, id="too few samples so far"),
    ],
)
def test_no_more_load_where_it_could_not_change_the_word(limits, rounds, enough):
    load, made = load_of([[(100, [10] * 9)] * rounds]), plan(**limits)
    assert decided(judge_limits(made.points[0], load, Yardsticks(made)), load, made) is enough


def test_goodput_counts_errors_as_misses_and_itl_pools_all_gaps():
    fine, slow, broken = trace(0, 10, [1, 1]), trace(0, 900, [1, 1]), trace(0, 10, [1], status="failed")
    limits = [Limit("max_ttft_p99_ms", 100, "ttft", "p99")]
    assert [good(one, limits) for one in (fine, slow, broken)] == [True, False, False]
    assert max(pooled(latency("itl", [fine, trace(0, 5, [1, 700])]))) == 700
