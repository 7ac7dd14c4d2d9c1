# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Charts keep inside their frame, leave unknown values out, and let a single stall be seen."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import charts
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.chart_latency import Row, latency
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.chart_throughput import Mark, throughput
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.chart_time import card, shares, timeline
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report_series import Histogram
from hypothesis import given
from hypothesis import strategies as st

amount = st.none() | st.floats(0, 1e6, allow_nan=False)


def parsed(svg):
    return ET.fromstring(svg)


def frame(root):
    return tuple(float(part) for part in root.get("viewBox").split()[2:])


def histogram(*values):
    samples = Histogram()
    for value in values:
        samples.add(value)
    return samples


def inside(root):
    """Assert that every coordinate of the drawing lies in its frame."""
    width, height = frame(root)
    for each in root.iter():
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", each.get("d", "")):
            assert -0.1 <= float(x) <= width + 0.1 and -0.1 <= float(y) <= height + 0.1, each.get("d")
        if each.tag == "rect":
            x, y, wide, high = (float(each.get(name)) for name in ("x", "y", "width", "height"))
            assert x >= -0.1 and y >= -0.1 and x + wide <= width + 1 and y + high <= height + 0.1


@given(st.lists(st.tuples(amount, amount, amount, amount), min_size=1, max_size=9), st.lists(st.floats(1e-3, 1e6), min_size=9))
def test_points_stay_inside_and_unknown_ones_are_not_drawn(rows, loads):
    marks = [
        Mark(load, value, limit=limit, bound=bound, serial=serial)
        for load, (value, limit, bound, serial) in zip(loads, rows, strict=False)
    ]
    svg = throughput(marks, "in flight", "bound")
    if not any((height or 0) > 1e-6 for row in rows for height in row):
        assert svg == ""
        return
    root = parsed(svg)
    inside(root)
    assert len(list(root.iter("circle"))) == sum(value is not None for value, *_rest in rows)
    drawn = [path.get("class") for path in root.iter("path")]
    assert drawn.count("limit") == sum(limit is not None for _value, limit, *_rest in rows)
    assert ("bound" in drawn) == any(row[2] is not None for row in rows)
    assert ("serial" in drawn) == any(row[3] is not None for row in rows)


def test_more_tokens_are_drawn_higher_and_a_limit_above_the_figure_is_above_it():
    root = parsed(throughput([Mark(1, 25.0, limit=33.8, bound=48.0), Mark(16, 130.0)], "in flight", "bound"))
    first, second = (float(each.get("cy")) for each in root.iter("circle"))
    limit = next(float(path.get("d").split()[1].partition("h")[0]) for path in root.iter("path") if path.get("class") == "limit")
    assert second < limit < first


@given(st.floats(0, 1e12, allow_nan=False))
def test_an_axis_ends_at_or_above_its_highest_value(value):
    top = charts.nice_ceiling(value)
    assert top >= value * 0.99999 and (value < 1e-6 or top <= 1.7 * value)


@given(st.floats(1e-3, 1e6), st.floats(1.1, 1e6), st.integers(2, 8))
def test_an_axis_of_ratios_has_values_inside_and_not_too_many(low, ratio, most):
    values = charts.round_values(low, low * ratio, most)
    assert len(values) <= most and values == sorted(set(values))
    assert all(low * 0.998 <= value <= low * ratio * 1.002 for value in values)


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=60))
def test_every_sample_is_drawn(samples):
    root = parsed(latency([Row("1", histogram(*samples), {"p50": samples[0]}, limits=[samples[-1]])]))
    inside(root)
    assert 1 <= len(list(root.iter("rect"))) <= len(samples)


def test_one_stall_among_a_hundred_thousand_gaps_is_seen():
    gaps = histogram(*[25.0] * 100_000, 900.0)
    columns = list(parsed(latency([Row("8", gaps)])).iter("rect"))
    assert len(columns) == 2
    far = max(columns, key=lambda each: float(each.get("x")))
    assert float(far.get("height")) >= 2 and float(far.get("x")) > 350
    assert "max 900 · n 100,001" in latency([Row("8", gaps)])


def test_nothing_to_draw_gives_nothing():
    nothing = [throughput([], "", ""), latency([]), latency([Row("1", Histogram())]), timeline([], [], None), shares([], {}, [])]
    assert nothing == [""] * 5


def test_a_timeline_of_silence_and_a_card_without_readings_are_drawn():
    inside(parsed(timeline([1.0, 2.0], [0.0, 0.0], (0.5, 9.0), level=3.0, limit=4.0)))
    root = parsed(card([0.0, 1.0], [None, None], [0.5, 0.6], full_w=600.0, end=1.0, windows=[(0.2, 0.8)]))
    assert [path.get("class") for path in root.iter("path") if path.get("class") in ("power", "busy")] == ["busy"]


def test_warm_up_and_window_are_named_and_shaded():
    svg = timeline([0.5 * step for step in range(40)], [10.0] * 40, (6.0, 14.0))
    assert [each.text for each in parsed(svg).iter("text")][:3] == ["warm-up", "window", "cut"]
    shade = next(parsed(svg).iter("rect"))
    assert shade.get("class") == "window" and float(shade.get("width")) == pytest.approx(308 * 8 / 19.75, abs=0.2)


def test_an_unknown_ratio_is_no_empty_bar():
    assert "unknown" in charts.meter(None, "") and "unknown" not in charts.meter(0.0, "")
    assert re.search(r"width:100\.0%", charts.meter(7.0, ""))


def test_chunks_of_one_packet_do_not_take_the_axis():
    """83.5 ms between tokens, twice 1 µs where two chunks were read at once: the axis once began at 0.001 ms."""
    chart = latency([Row("8", histogram(0.001, 0.001, *[83.5] * 500, 120.0))])
    ticks = [float(words) for words in re.findall(r'text-anchor="middle">([\d.]+)<', chart)]
    assert min(ticks) >= 5
    assert "≤ " in chart
    assert min(float(rect.get("x")) for rect in parsed(chart).iter("rect")) < 64
    assert "≤ " not in latency([Row("8", histogram(*[83.5] * 500, 120.0))])


@given(st.lists(st.floats(0.001, 1e5), min_size=1, max_size=60))
def test_the_median_bin_holds_the_middle_sample(values):
    samples = histogram(*values)
    middle = histogram(sorted(values)[(len(values) - 1) // 2])
    assert samples.median_bin == next(iter(middle.counts))
