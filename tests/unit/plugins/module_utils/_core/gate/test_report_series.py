# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests become series: tokens are kept, latencies are those of the window, readings keep their highest value."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report_beside import Beside
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report_series import PointSeries
from hypothesis import given
from hypothesis import strategies as st


def request(planned_s, moments, *, phase="window", status="ok", **more):
    nanoseconds = [round(moment * 1e9) for moment in moments]
    return {
        "planned_ns": round(planned_s * 1e9), "first_ns": nanoseconds[0], "end_ns": nanoseconds[-1], "phase": phase,
        "status": status, "concurrency": 1, "chunks": [[moment, 1] for moment in nanoseconds], **more,
    }  # fmt: skip


def series(*rows):
    found = PointSeries.empty(0, rows[0], rows[0]["planned_ns"] / 1e9)
    for row in rows:
        found.add(row)
    return found


@given(st.lists(st.floats(0, 30) | st.just(5e4), min_size=1, max_size=20), st.floats(0, 100))
def test_no_token_is_lost_by_spreading(gaps, planned):
    moments, now = [], planned
    for gap in gaps:
        now += gap
        moments.append(now)
    assert sum(series(request(planned, moments)).tokens.values()) == pytest.approx(len(gaps))


def test_an_even_stream_is_drawn_flat():
    seconds, rates = series(request(3.0, [3.0 + 0.04 * count for count in range(1, 400)])).per_second(120)
    assert max(abs(rate - 25) for rate in rates) < 0.2 and seconds[0] == pytest.approx(0.125)
    assert len(rates) <= 120 and len(series(request(0, [4000.0 * part for part in range(1, 9)])).per_second(120)[1]) <= 120


def test_a_stall_is_a_gap_to_the_floor():
    moments = [0.04 * count for count in range(1, 100)] + [6.0 + 0.04 * count for count in range(100)]
    _seconds, rates = series(request(0.0, moments)).per_second(120)
    assert min(rates) < 1 and max(rates) == pytest.approx(25, abs=0.5)


def test_latencies_are_those_of_requests_that_ended_well_in_the_window():
    rows = [request(0, [0.5, 0.6, 0.8], ttft_ms=500.0), request(0, [0.1, 0.2], phase="warmup", ttft_ms=100.0)]
    rows += [request(0, [0.1, 9.0], status="failed", ttft_ms=100.0), request(0, [0.1, 9.0], phase="drain", ttft_ms=100.0)]
    found = series(*rows).latencies
    assert [found[name].n for name in ("ttft_ms", "itl_ms")] == [1, 2]
    assert found["itl_ms"].largest == pytest.approx(200)


def test_reasoning_puts_the_first_answer_token_later():
    found = series(request(1.0, [1.5, 2.0, 3.0], ttft_ms=500.0, first_answer_ns=3 * 10**9)).latencies
    assert found["ttft_answer_ms"].largest == pytest.approx(2000)


@pytest.mark.parametrize("place", ["gpus", "row"])
def test_a_long_run_is_thinned_and_a_spike_of_power_is_still_told(place):
    beside = Beside()
    for second in range(5000):
        card = {"index": 3, "power_w": 590.0 if second == 2500 else 90.0, "utilization_ratio": None if place == "row" else 0.5}
        beside.add({"ns": second * 10**9, "gpus": [card], "host": {"cpu_ratio": 0.25}})
    (card,) = beside.cards()
    assert len(card.seconds) <= 160 and card.peak_w == 590.0 and max(card.power_w) > 90
    assert set(card.utilization_ratio) == {None if place == "row" else 0.5}
    assert list(beside.host().shares) == ["cpu_ratio"]
