# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The open loop: arrivals keep their schedule whatever the server does, and waiting anywhere is latency."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.arrivals import OpenLoop, gaps_s
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.load import PointLoad
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.metrics import e2e_ms, point_figures, ttft_ms
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.throughput import throughput
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.validity import check_schedule, falls_behind
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.verdict import Yardsticks, judge_limits
from hypothesis import given, settings
from hypothesis import strategies as st

from .paced_server import Pace, serving
from .test_run import no_cards

sys.path.insert(0, str(Path(__file__).resolve().parents[6] / "benchmarks" / "gate"))
from virtual import NS, run_virtually

TOKENS = 8


def arrive(
    rate,
    service_s,
    *,
    arrivals="poisson",
    seed="7/0",
    most=1024,
    seconds=60.0,
    slots=10_000,
    decided=None,
    pause=None,
    fifth=1,
):
    """Let requests arrive at a server in virtual time: ``slots`` at once, each for ``service_s``, a token every eighth of it.

    Each fifth takes ``fifth`` times as long. ``pause`` = (from, until): the client itself does not run in between.
    """

    async def main(loop):
        room = asyncio.Semaphore(slots)

        async def send(number, warm_up, trace):
            trace.sent_ns = loop.time_ns()
            async with room:
                for dummy in range(TOKENS):
                    await asyncio.sleep((1 if number % 5 else fifth) * service_s / TOKENS)
                    trace.chunks.append([loop.time_ns(), 1])
            trace.output_tokens, trace.status, trace.done_ns = TOKENS, "ok", loop.time_ns()
            return trace

        load = PointLoad(most, [[]], rate=rate, arrivals=arrivals)
        made = OpenLoop(send, gaps_s(rate, arrivals, seed), load, clock_ns=loop.time_ns, max_seconds=seconds)
        if pause:
            loop.call_at(pause[0], lambda: setattr(loop.clock, "now", pause[1]))
        return await made.run(decided or (lambda load: False), lambda load: None)

    return run_virtually(main)


def planned_s(load):
    return sorted(trace.planned_ns / NS for trace in (*load.warm_up, *load.window, *load.drained))


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_arrivals_keep_their_rate_whatever_the_server_does(arrivals):
    fast, slow = (arrive(20, service, arrivals=arrivals, seconds=30) for service in (0.1, 3))
    count = min(len(planned_s(fast)), len(planned_s(slow)))
    assert planned_s(fast)[:count] == planned_s(slow)[:count]
    gaps = [after - before for before, after in itertools.pairwise(planned_s(fast))]
    assert fmean(gaps) == pytest.approx(1 / 20, rel=0.1)
    # Exponential gaps vary as much as they last on average; equal ones not at all.
    assert pstdev(gaps) / fmean(gaps) == pytest.approx(1.0 if arrivals == "poisson" else 0.0, abs=0.15)


def test_the_seed_of_the_plan_makes_the_arrivals_and_zero_is_one():
    def first(seed):
        return list(itertools.islice(gaps_s(5, "poisson", seed), 5))

    assert first("0/0") == first("0/0")
    assert len({tuple(first(seed)) for seed in ("0/0", "7/0", "7/1", "/0")}) == 4


def test_figures_of_a_server_that_keeps_up():
    load = arrive(20, 0.4, seconds=60)
    figures = point_figures(load, (), 0.95, output_tokens=4)
    assert load.settled
    assert figures["requests"]["planned"] == figures["requests"]["ok"] == pytest.approx(1200, rel=0.1)
    # All of the window is awaited, and while that lasts the next ones arrive: nobody is served by an emptying machine.
    assert load.after
    assert figures["ttft_ms"]["p50"] == pytest.approx(50, rel=0.05)
    assert figures["e2e_ms"]["p99"] == pytest.approx(400, rel=0.05)
    assert figures["output_tokens_per_s"] == pytest.approx(20 * TOKENS, rel=0.1)
    assert figures["ci"][0] <= 20 * TOKENS <= figures["ci"][1]
    assert figures["in_flight"]["mean"] == pytest.approx(20 * 0.4, rel=0.1)
    assert figures["concurrency"] == pytest.approx(8, abs=1)
    assert (figures["rate"], figures["arrivals"], figures["goodput_ratio"]) == (20, "poisson", 1)
    assert falls_behind(load) is None
    assert check_schedule(load) == []


def test_tokens_outside_the_window_are_not_counted():
    load = arrive(10, 1.0, arrivals="constant", seconds=20)
    inside = sum(
        load.window_start_ns <= moment < load.window_end_ns
        for trace in (*load.warm_up, *load.window, *load.after)
        for moment in trace.chunks.times
    )
    assert throughput(load, 0.95).value == pytest.approx(inside / ((load.window_end_ns - load.window_start_ns) / NS))


def test_a_server_slower_than_the_arrivals_is_seen_as_latency_and_named():
    """One request at a time, 0.1 s each, 12 a second: each second two more wait."""
    load = arrive(12, 0.1, arrivals="constant", slots=1, seconds=60)
    first, last = load.window[0], load.window[-1]
    assert ttft_ms(last) > ttft_ms(first) + 5000
    assert "does not keep up with 12 requests/s" in falls_behind(load)


def test_a_load_that_never_settles_says_so():
    load = arrive(40, 0.1, arrivals="constant", slots=1, seconds=20)
    assert not load.settled
    assert "had not settled" in check_schedule(load)[0]


@pytest.mark.parametrize(("rate", "seconds"), [(5, 120), (9, 60), (9, 8)])
def test_a_queue_that_only_wanders_is_not_accused(rate, seconds):
    """At 0.9 of what it can do, random arrivals queue for a while; that is latency, not a server too slow."""
    for seed in range(300 // seconds):
        assert falls_behind(arrive(rate, 0.1, slots=1, seconds=seconds, seed=f"{seed}/0")) is None


def test_a_look_in_the_middle_leaves_out_nothing_that_takes_long():
    """Each fifth request takes ten times as long: those that ended must not be judged without the slow ones before them."""
    looks = []

    def decided(load):
        looks.append([trace.planned_ns for trace in load.window])
        return False

    load = arrive(10, 0.2, arrivals="constant", seconds=20, fifth=10, decided=decided)
    order = [trace.planned_ns for trace in load.window]
    assert order == sorted(order)
    assert len(looks) > 20
    assert all(seen == order[: len(seen)] for seen in looks)


def test_a_promoted_figure_is_that_of_the_same_arrivals():
    load = arrive(20, 0.4, seconds=30)
    value = throughput(load, 0.95).value
    plan = GatePlan.from_dict({"output_tokens": TOKENS, "points": [{"rate": 20, "min_ratio_to_promoted": 0.5}]})

    def word(**other):
        old = {"output_tokens_per_s": value, "ci": [value * 0.9, value * 1.1], "concurrency": 8, **other}
        return judge_limits(plan.points[0], load, Yardsticks(plan, promoted={"points": [old]}))[0].verdict

    assert word(rate=20, arrivals="poisson") == "pass"
    assert word(rate=20, arrivals="constant") == word(rate=10, arrivals="poisson") == word(rate=None) == "inconclusive"


def test_held_back_requests_age_from_their_planned_start():
    free, bounded = (arrive(10, 1.0, arrivals="constant", most=most, seconds=20) for most in (1024, 5))
    assert free.held_back == 0
    assert bounded.held_back > 50
    # Their wait is not the client's fault, so it is no lateness of the client ...
    assert not any("set out late" in reason for reason in check_schedule(bounded))
    # ... but it is the latency of a server that was given no more than five at a time.
    assert ttft_ms(bounded.window[-1]) > 1000 + ttft_ms(free.window[-1])


def test_a_client_that_does_not_run_is_latency_and_leaves_no_verdict():
    load = arrive(10, 0.2, arrivals="constant", seconds=30, pause=(15.0, 17.0))
    assert max(map(e2e_ms, load.window)) > 1900
    assert "it could not keep the schedule" in check_schedule(load)[0]


def test_it_ends_as_soon_as_it_may_and_still_awaits_the_window():
    load = arrive(10, 2.0, arrivals="constant", seconds=60, decided=lambda load: load.rounds >= 30)
    assert load.stop == "decided"
    assert (load.window_end_ns - load.window_start_ns) / NS == pytest.approx(5, abs=1)
    assert not load.drained
    assert len(load.window) == pytest.approx(50, abs=6)


def test_what_never_ends_is_cut_and_missed():
    load = arrive(1, 500.0, arrivals="constant", seconds=20)
    figures = point_figures(load, (), 0.95, output_tokens=4)
    assert figures["requests"]["cancelled"] == figures["requests"]["planned"] == pytest.approx(20, abs=1)
    assert figures["goodput_ratio"] == 0
    assert figures["ttft_ms"]["p50"] is None


@settings(max_examples=25, deadline=None)
@given(st.floats(2, 30), st.floats(0.05, 3), st.integers(1, 40), st.integers(0, 5))
def test_every_request_due_in_the_window_is_counted_once(rate, service, most, seed):
    load = arrive(rate, service, most=most, seconds=15, seed=f"{seed}/0")
    counted = [*load.window, *load.drained]
    assert len({id(trace) for trace in (*counted, *load.warm_up, *load.after)}) == len(counted) + len(load.warm_up) + len(
        load.after
    )
    assert all(load.window_start_ns <= trace.planned_ns < load.window_end_ns for trace in counted)
    due = itertools.accumulate(itertools.islice(gaps_s(rate, "poisson", f"{seed}/0"), 3000))
    expected = sum(load.window_start_ns <= round(moment * NS) < load.window_end_ns for moment in due)
    assert abs(len(counted) - expected) <= 1
    for trace in load.window:
        assert trace.sent_ns >= trace.planned_ns
        assert e2e_ms(trace) >= service * 1000 - 1e-3


def test_a_whole_gate_at_an_arrival_rate(tmp_path, capsys):
    """Through HTTP, plan file, result, terminal and report."""
    plan = {"input_tokens": 16, "output_tokens": 20, "min_seconds_per_point": 2, "max_seconds_per_point": 6, "stall_timeout_s": 5}
    points = [{"rate": 25, "arrivals": "constant", "max_ttft_p50_ms": 400, "min_goodput_ratio": 0.5}, {"concurrency": 2}]
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "points": points}))
    with serving(Pace(ttft_s=0.2, itl_s=0.005)) as url:
        words = ["gate", "--base-url", url, "--plan", str(tmp_path / "plan.json"), "--out", str(tmp_path / "out")]
        status = main(words)
    out, err = capsys.readouterr()
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    point, closed = result["points"]
    assert (status, result["verdict"]) == (0, "pass"), result["reasons"]
    assert (point["rate"], point["arrivals"], closed["rate"], closed["concurrency"]) == (25, "constant", None, 2)
    assert point["concurrency"] == pytest.approx(25 * (0.2 + 19 * 0.005), abs=2)
    assert point["output_tokens_per_s"] == pytest.approx(25 * 20, rel=0.15)
    assert point["client"]["late_ms"]["n"] == point["requests"]["planned"] > 40
    assert [limit["verdict"] for limit in point["limits"]] == ["pass", "pass"]
    assert "\n25/s " in out
    assert "rate 25/s   " in err
    phases = [json.loads(line).get("phase") for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert phases.count("window") >= point["requests"]["planned"]
    assert "warmup" in phases
    assert "Output tok/s by arrival rate" in (tmp_path / "out" / "report.html").read_text()
    assert "25 requests/s" in (tmp_path / "out" / "report.md").read_text()


def test_an_overloaded_server_fails_or_is_observed_with_a_word(tmp_path):
    plan = {"input_tokens": 16, "output_tokens": 20, "min_seconds_per_point": 3, "max_seconds_per_point": 3, "stall_timeout_s": 9}
    points = [{"rate": 60, "min_goodput_ratio": 0.5}, {"rate": 60}]
    with serving(Pace(ttft_s=0.05, itl_s=0.005, slots=3)) as url:
        made = GatePlan.from_dict({**plan, "points": points})
        result = run_gate(url, made, tmp_path, open_nvml=no_cards)
    limited, observed = result["points"]
    assert limited["verdict"] == result["verdict"] == "fail"
    assert any("rate 60/s: the server does not keep up with 60 requests/s" in reason for reason in result["reasons"])
    assert "does not keep up" in observed["headroom"]


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ({"rate": 2, "concurrency": 4}, "both concurrency and rate"),
        ({"concurrency": 4, "arrivals": "poisson"}, "arrivals needs a rate"),
        ({"concurrency": 4, "max_in_flight": 8}, "max_in_flight needs a rate"),
        ({"rate": 0}, "is not a number from 0.001"),
        ({"rate": 2, "arrivals": "uniform"}, "none of poisson, constant"),
        ({"rate": 2, "max_in_flight": 0}, "max_in_flight"),
        ({"rate": 2, "min_roofline_ratio": 0.5}, "says nothing at an arrival rate"),
        ({"rate": 2, "min_output_tokens_per_s": 600}, "cannot come of 2 requests/s with 256 tokens"),
    ],
)
def test_points_that_make_no_sense_are_refused(point, said):
    with pytest.raises(InferopsError) as caught:
        GatePlan.from_dict({"points": [point]})
    assert said in str(caught.value)


def test_an_arrival_rate_is_written_back_as_it_was_read():
    plan = GatePlan.from_dict({"points": [{"rate": 2, "max_ttft_p99_ms": 800}, {"rate": 0.5, "arrivals": "constant"}]})
    assert plan.as_dict()["points"][0] == {"rate": 2.0, "arrivals": "poisson", "max_in_flight": 1024, "max_ttft_p99_ms": 800.0}
    assert GatePlan.from_dict(plan.as_dict()) == plan
    # A first deploy without limits: nearly all must be answered; later, what the promoted release gave at the same rate.
    bare = GatePlan.from_dict({"points": [{"rate": 2}]})
    assert bare.with_default_limits((), tp_size=1).points[0].limits[0].name == "min_goodput_ratio"
    assert bare.with_default_limits(("2/s poisson",), tp_size=1).points[0].limits[0].name == "min_ratio_to_promoted"
    assert bare.with_default_limits((2,), tp_size=1).points[0].limits[0].name == "min_goodput_ratio"
