"""The benchmarks' arithmetic: what a log says was true, how far a figure is off, which of two is nearer. No timing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "gate"))
import peers
import reach
import yardstick
from _core.gate.stream import Trace

MS = 1_000_000


def _request(received_ms: int, sent_ms: list[int], *, whole: bool = False) -> dict:
    return {"received_ns": received_ms * MS, "sent_ns": [moment * MS for moment in sent_ms], "whole": whole}


def test_truth_takes_whole_streamed_answers_only():
    log = {
        "requests": [
            _request(0, [200, 300, 400, 500]),
            _request(1000, [1300, 1400, 1500, 1500]),
            _request(0, [50, 60]),
            _request(0, [9000] * 4, whole=True),
        ]
    }
    true = yardstick.truth(log, streams=3, tokens=4)
    assert true.tokens_per_s == pytest.approx(3 * 4 / 0.5)
    assert true.ttft_p50_ms == 250
    assert true.itl_p50_ms == 100
    with pytest.raises(ValueError, match="no request"):
        yardstick.truth(log, streams=3, tokens=5)


def test_error_has_a_sign_and_nothing_said_is_no_error():
    assert yardstick.error(99.0, 100.0) == pytest.approx(-0.01)
    assert yardstick.error(None, 100.0) is None


def test_paired_needs_two_rounds_for_an_interval():
    assert yardstick.paired([1.0], [2.0]) == yardstick.Paired(-1.0, None)
    assert not yardstick.paired([2.0], [1.0]).as_good
    # Differences 1, 2, 3: mean 2, s = 1, t(2, 97.5 %) = 4.303, so 2 ± 2.484 holds 0.
    near = yardstick.paired([2.0, 3.0, 4.0], [1.0, 1.0, 1.0])
    assert (near.difference, near.reach) == (2.0, pytest.approx(4.3027 / 3**0.5, rel=1e-3))
    assert near.as_good
    assert not yardstick.paired([2.0, 2.1, 2.0], [1.0, 1.0, 1.0]).as_good


def _run(client: str, number: int, **figures: float | None) -> peers.Run:
    known: dict = dict.fromkeys(("throughput", "ttft", "itl", "itl_p99", "cpu_s", "startup_s", "startup_cpu_s"), 0.1)
    true = yardstick.Truth(100.0, 200.0, 10.0, 50.0)
    return peers.Run(client, 8, number, **{**known, **figures}, tokens=1000, server_cpu_ratio=0.1, true=true)


def _missed(runs: list[peers.Run]) -> list[str]:
    return [line for line, good in peers.bars(runs) if not good]


def test_bars_ask_for_the_best_peer_in_each_column_and_for_half_the_processor_time():
    ours, near, far = peers.OURS.name, "near", "far"
    even = [_run(client, number, cpu_s=cpu_s) for number in (0, 1) for client, cpu_s in ((ours, 0.05), (near, 0.1), (far, 9.0))]
    assert not _missed(even)
    dear = [_run(run.client, run.round, cpu_s=0.06 if run.client == ours else run.cpu_s) for run in even]
    assert len(_missed(dear)) == 1 and "60%" in _missed(dear)[0]
    # The sign of an error is no merit, and the far peer does not set the bar.
    worse = [_run(run.client, run.round, cpu_s=run.cpu_s, ttft={ours: -0.3, near: 0.2, far: 0.9}[run.client]) for run in even]
    assert [line.split()[2] for line in _missed(worse)] == ["TTFT"]


def test_bars_pair_the_rounds_that_both_have():
    ours, other = peers.OURS.name, "other"
    runs = [_run(ours, 0, ttft=0.2, cpu_s=0.01), _run(other, 0, ttft=0.2), _run(ours, 1, ttft=0.9, cpu_s=0.01), _run(other, 2)]
    assert not _missed(runs)


def test_a_client_without_a_figure_sets_no_bar():
    runs = [_run(peers.OURS.name, 0, cpu_s=0.01), _run("other", 0, itl_p99=None)]
    assert not any("ITL p99" in line for line, dummy in peers.bars(runs))


def test_runs_are_read_back_as_they_were_written(tmp_path):
    run = _run("other", 3, itl_p99=None)
    file = tmp_path / "runs.jsonl"
    file.write_text(peers.line_of(run))
    assert peers.read_runs(file) == [run]


def test_reach_by_two_processes_sees_every_token_of_the_server():
    server = peers.Server(0)
    try:
        one = reach.reach(server, 8, 200, 1.5, processes=2)
    finally:
        server.close()
    # How far a crowded machine puts a client off is the benchmark's own business.
    assert abs(one.throughput_error) < 0.2
    assert 0 < one.client_share < 1 and one.planner_share is not None


def test_reach_sees_what_truth_sees():
    traces = []
    for sent in (0, 7):
        trace = Trace(planned_ns=0, sent_ns=sent * MS)
        for moment in (200, 230, 250, 500):
            trace.chunks.append([(sent + moment) * MS, 1])
        traces.append(trace)
    log = {"requests": [_request(0, [200, 230, 250, 500])]}
    true = yardstick.truth(log, streams=2, tokens=4)
    assert reach.seen(traces, 2) == pytest.approx((true.tokens_per_s, true.ttft_p50_ms, true.itl_p50_ms))
