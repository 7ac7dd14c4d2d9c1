# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Charts keep inside their frame and leave unknown values out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import charts
from hypothesis import given
from hypothesis import strategies as st

amount = st.none() | st.floats(0, 1e6, allow_nan=False)


def parsed(svg):
    return ET.fromstring(svg)


@given(st.lists(st.tuples(amount, amount, amount), min_size=1, max_size=9))
def test_bars_stay_inside_and_unknown_ones_are_not_drawn(rows):
    bars = [charts.Bar(str(index), value, limit=limit, bound=bound) for index, (value, limit, bound) in enumerate(rows)]
    svg = charts.throughput(bars)
    if all(item is None for row in rows for item in row):
        assert svg == ""
        return
    root = parsed(svg)
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    rects = list(root.iter("rect"))
    for rect in rects:
        x, y, wide, high = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + wide <= width + 0.1 and y + high <= height + 0.1
    assert len(rects) == sum(value is not None for value, _limit, _bound in rows) + sum(
        bound is not None for *_rest, bound in rows
    )


@given(st.floats(0, 1e12, allow_nan=False))
def test_an_axis_ends_at_or_above_its_highest_value(value):
    top = charts.nice_ceiling(value)
    assert top >= value * 0.99999 and (value < 1e-6 or top <= 1.7 * value)


@pytest.mark.parametrize("samples", [[0.0], [5.0, 5.0], [1.0, 1e6], [250.0, 251.0]])
def test_latencies_draw_every_sample_once(samples):
    root = parsed(charts.latency([charts.Row("1", samples, p50=samples[0], p90=samples[-1])]))
    assert 1 <= len(list(root.iter("rect"))) <= len(samples)


def test_nothing_to_draw_gives_nothing():
    assert (
        charts.throughput([])
        == charts.latency([])
        == charts.latency([charts.Row("1", [])])
        == charts.timeline([], [], None)
        == ""
    )


def test_a_timeline_of_silence_and_a_card_without_readings_are_drawn():
    parsed(charts.timeline([1.0, 2.0], [0.0, 0.0], (0.5, 9.0)))
    root = parsed(charts.card([0.0, 1.0], [None, None], [0.5, 0.6], 600.0, 1.0))
    assert [path.get("class") for path in root.iter("path") if path.get("class") in ("power", "busy")] == ["busy"]


def test_an_unknown_ratio_is_no_empty_bar():
    assert "unknown" in charts.meter(None, "") and "unknown" not in charts.meter(0.0, "")
    assert re.search(r"width:100\.0%", charts.meter(7.0, ""))
