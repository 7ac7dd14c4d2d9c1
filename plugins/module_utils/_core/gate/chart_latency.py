# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Distributions of a latency, one row per point, on an axis of equal ratios: one stall among a million gaps is still seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .charts import floor, round_values, svg, text
from .report_format import figure
from .report_series import BINS_PER_DECADE, Histogram, bin_of

WIDTH, LEFT, RIGHT, ROW, TALL = 520.0, 62.0, 14.0, 76.0, 42.0
COLUMNS = 70
LEAST_BINS = BINS_PER_DECADE // 2
MARKS = ("p50", "p90", "p99")


@dataclass(frozen=True)
class Row:
    """One row: where it was measured, the samples, the percentiles and limits to mark [ms]."""

    label: str
    samples: Histogram
    marks: Mapping[str, float | None] = field(default_factory=dict)
    limits: Sequence[float] = ()


def latency(rows: Sequence[Row]) -> str:
    """Return the chart; a column holds at least a visible sliver when it holds one sample."""
    rows = [row for row in rows if row.samples.counts]
    if not rows:
        return ""
    lowest, last = min(min(row.samples.counts) for row in rows), max(max(row.samples.counts) for row in rows) + 1
    # Two chunks that arrive in one packet lie microseconds apart: shown at the edge, or they would be most of the axis.
    first = max(lowest, min(row.samples.median_bin for row in rows) - BINS_PER_DECADE)
    for place in (bin_of(value) for row in rows for value in row.limits if value > 0):
        # A limit far away would squeeze everything else; its figure stands in the table of limits.
        if first - BINS_PER_DECADE <= place <= last + BINS_PER_DECADE:
            first, last = min(first, place), max(last, place + 1)
    spare = max(LEAST_BINS - (last - first), 8)
    first, last = first - spare // 2, last + (spare + 1) // 2
    step = -(-(last - first) // COLUMNS)
    wide = (WIDTH - LEFT - RIGHT) * step / (last - first)

    def x(milliseconds: float) -> float:
        place = BINS_PER_DECADE * math.log10(max(milliseconds, 1e-9)) - first
        return LEFT + (WIDTH - LEFT - RIGHT) * place / (last - first)

    parts: list[str] = []
    for position, row in enumerate(rows):
        base = ROW * (position + 1) - 6
        parts.append(floor(LEFT, WIDTH - RIGHT, base))
        parts += _columns(row.samples, first, step, wide, base)
        for style, mark in row.marks.items():
            if mark is not None and LEFT <= x(mark) <= WIDTH - RIGHT:
                parts.append(f'<path class="{style}" d="M{x(mark):.1f} {base + 3:.1f}V{base - TALL - 3:.1f}"/>')
        for limit in row.limits:
            if limit > 0 and LEFT <= x(limit) <= WIDTH - RIGHT:
                parts.append(f'<path class="limit" d="M{x(limit):.1f} {base + 3:.1f}V{base - TALL - 3:.1f}"/>')
        parts.append(text(LEFT - 8, base - 3, row.label, "strong", "end"))
        parts.append(text(WIDTH - RIGHT, base - TALL - 8, _figures(row), "fine", "end"))
    foot = ROW * len(rows)
    low, high = 10 ** (first / BINS_PER_DECADE), 10 ** (last / BINS_PER_DECADE)
    folded = lowest < first
    if folded:
        parts.append(text(LEFT, foot + 14, f"≤ {figure(low)}", anchor="start"))
    for value in round_values(low, high, 5):
        if folded and x(value) < LEFT + 75:
            continue
        parts.append(f'<path class="grid" d="M{x(value):.1f} {foot - 6:.1f}v5"/>')
        parts.append(text(x(value), foot + 14, figure(value)))
    parts.append(text(0, foot + 14, "ms", anchor="start"))
    return svg(WIDTH, foot + 20, "Distribution in milliseconds, one row per load", parts)


def _columns(samples: Histogram, first: int, step: int, wide: float, base: float) -> list[str]:
    heights: dict[int, int] = {}
    for place, count in samples.counts.items():
        column = max(0, (place - first) // step)
        heights[column] = heights.get(column, 0) + count
    peak = max(heights.values())
    parts = []
    for column, count in sorted(heights.items()):
        height = max(2.5, TALL * count / peak)
        parts.append(
            f'<rect class="hist" x="{LEFT + wide * column + 0.4:.1f}" y="{base - height:.1f}" '
            f'width="{max(1.0, wide - 0.8):.1f}" height="{height:.1f}"/>'
        )
    return parts


def _figures(row: Row) -> str:
    known = [f"{name} {figure(value)}" for name, value in row.marks.items() if value is not None]
    return " · ".join([*known, f"max {figure(row.samples.largest)}", f"n {figure(row.samples.n)}"])
