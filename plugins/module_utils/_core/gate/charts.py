# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small SVG charts as text. Colours and fonts come from the page's style sheet; every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .report_format import ABSENT, escape, figure


@dataclass(frozen=True)
class Bar:
    """One measured point of the throughput chart. None = not measured, no limit, bound not known."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    bound: float | None = None
    verdict: str | None = None


@dataclass(frozen=True)
class Row:
    """One row of the latency chart: samples, percentiles to mark, and the limit if there is one."""

    label: str
    samples: Sequence[float]
    p50: float | None = None
    p90: float | None = None
    limit: float | None = None


def nice_ceiling(value: float) -> float:
    """Return the next round number an axis can end at.

    >>> [nice_ceiling(value) for value in (0, 7.2, 96, 573)]
    [1.0, 8.0, 100.0, 600.0]
    """
    if value < 1e-9:
        return 1.0
    base = 10.0 ** math.floor(math.log10(value))
    return next(base * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if base * step >= value * 0.999999)


def throughput(bars: Sequence[Bar]) -> str:
    """Measured tok/s by concurrency as bars, the bound behind them, limits as lines, and the figures below each bar."""
    heights = [value for each in bars for value in (each.value, each.high, each.bound, each.limit) if value is not None]
    if not heights:
        return ""
    left, top, plot, width = 56, 8, 150, 420
    ceiling = nice_ceiling(max(heights))
    slot = (width - left - 6) / len(bars)
    wide = min(66.0, slot * 0.62)

    def y(value: float) -> float:
        return top + plot * (1 - value / ceiling)

    parts = [_grid(left, width - 6, ceiling, y, 4)]
    for position, column in enumerate(bars):
        middle = left + slot * (position + 0.5)
        x = middle - wide / 2
        if column.bound is not None:
            parts.append(
                f'<rect class="bound" x="{x:.1f}" y="{y(column.bound):.1f}" width="{wide:.1f}" '
                f'height="{y(0) - y(column.bound):.1f}" rx="3"/>'
            )
        if column.value is not None:
            height = max(1.0, y(0) - y(column.value))
            parts.append(
                f'<rect class="measured {escape(column.verdict or "observed")}" x="{x + wide * 0.14:.1f}" '
                f'y="{y(0) - height:.1f}" '
                f'width="{wide * 0.72:.1f}" height="{height:.1f}" rx="2"/>'
            )
        if column.low is not None and column.high is not None and y(column.low) - y(column.high) > 2:
            parts.append(
                f'<path class="whisker" d="M{middle - 5:.1f} {y(column.high):.1f}h10'
                f'M{middle:.1f} {y(column.high):.1f}V{y(column.low):.1f}m-5 0h10"/>'
            )
        if column.limit is not None:
            parts.append(f'<path class="limit" d="M{x - 5:.1f} {y(column.limit):.1f}h{wide + 10:.1f}"/>')
        below = top + plot
        rows = (
            ("tick strong", column.label, 18),
            ("tick value", figure(column.value, 1), 38),
            ("tick", figure(column.limit, 1), 56),
            ("tick", figure(column.bound, 0), 74),
        )
        parts += [
            f'<text class="{style}" x="{middle:.1f}" y="{below + down}" text-anchor="middle">{escape(text)}</text>'
            for style, text, down in rows
        ]
    heads = ((18, "in flight"), (38, "tok/s"), (56, "limit"), (74, "bound"))
    parts += [f'<text class="tick head" x="0" y="{top + plot + down}">{text}</text>' for down, text in heads]
    return _svg(width, top + plot + 82, "Output tokens per second by concurrency, with limit and bound", parts)


def latency(rows: Sequence[Row], unit: str = "ms") -> str:
    """One histogram per row on a common axis; median dark, 90th percentile light, limit in its own colour."""
    rows = [row for row in rows if row.samples]
    if not rows:
        return ""
    width, left, right, step = 420, 40, 12, 54
    high = max(max(row.samples) for row in rows)
    low = min(min(row.samples) for row in rows)
    high = max([high, *(row.limit for row in rows if row.limit is not None and row.limit < 2 * high)])
    start = 0.0 if low < high / 2 else math.floor(low / 5 - 1) * 5.0
    end = start + nice_ceiling((high - start) * 1.02)
    scale = (width - left - right) / (end - start)
    bins = 40
    parts = []
    for position, row in enumerate(rows):
        base = 16 + step * (position + 1) - 12
        counts = [0] * bins
        for value in row.samples:
            counts[min(bins - 1, max(0, int((value - start) / (end - start) * bins)))] += 1
        peak = max(counts)
        bin_width = (width - left - right) / bins
        parts.append(f'<path class="axis" d="M{left} {base}H{width - right}"/>')
        parts += [
            f'<rect class="hist" x="{left + bin_width * index + 0.5:.1f}" y="{base - 34 * count / peak:.1f}" '
            f'width="{bin_width - 1:.1f}" height="{34 * count / peak:.1f}"/>'
            for index, count in enumerate(counts)
            if count
        ]
        for style, mark in (("p50", row.p50), ("p90", row.p90), ("limit", row.limit)):
            if mark is not None and start <= mark <= end:
                x = left + (mark - start) * scale
                parts.append(f'<path class="{style}" d="M{x:.1f} {base + 3}V{base - 37}"/>')
        parts.append(f'<text class="tick strong" x="{left - 10}" y="{base - 2}" text-anchor="end">{escape(row.label)}</text>')
    base = 16 + step * len(rows)
    for index in range(5):
        value = start + (end - start) * index / 4
        anchor = "middle" if index < 4 else "end"
        parts.append(
            f'<text class="tick" x="{left + (value - start) * scale:.1f}" y="{base + 8}" text-anchor="{anchor}">'
            f"{escape(figure(value))}</text>"
        )
    parts.append(f'<text class="tick head" x="0" y="{base + 8}">{escape(unit)}</text>')
    return _svg(width, base + 16, f"Distribution by concurrency in {unit}", parts)


def timeline(seconds: Sequence[float], values: Sequence[float], window: tuple[float, float] | None) -> str:
    """Tokens per second over one point; the measured window is shaded."""
    if len(seconds) < 2:
        return ""
    width, left, right, top, plot = 360, 40, 8, 8, 96
    end = max(seconds[-1] + (seconds[1] - seconds[0]) / 2, window[1] if window else 0.0)
    ceiling = nice_ceiling(max(values) * 1.05)

    def x(value: float) -> float:
        return left + (width - left - right) * min(1.0, value / end)

    def y(value: float) -> float:
        return top + plot * (1 - value / ceiling)

    parts = []
    if window is not None:
        parts.append(
            f'<rect class="window" x="{x(window[0]):.1f}" y="{top}" width="{x(window[1]) - x(window[0]):.1f}" height="{plot}"/>'
        )
    parts.append(_grid(left, width - right, ceiling, y, 2))
    line = "L".join(f"{x(moment):.1f} {y(value):.1f}" for moment, value in zip(seconds, values, strict=True))
    parts.append(
        f'<path class="area" d="M{x(seconds[0]):.1f} {y(0):.1f}L{line}L{x(seconds[-1]):.1f} {y(0):.1f}Z"/>'
        f'<path class="line" d="M{line}"/>'
    )
    parts += [
        f'<text class="tick" x="{x(end * part):.1f}" y="{top + plot + 16}" text-anchor="{anchor}">'
        f"{escape(figure(end * part, 0))} s</text>"
        for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
    return _svg(width, top + plot + 22, "Output tokens per second over time", parts)


def card(seconds: Sequence[float], power: Sequence[float | None], busy: Sequence[float | None], full_w: float, end: float) -> str:
    """Power (area, full height is ``full_w``) and busy share (line, against 100 %) of one card over the run."""
    width, height = 240, 76
    parts = [f'<path class="grid" d="M0 1H{width}M0 {height / 2}H{width}"/><path class="axis" d="M0 {height}H{width}"/>']

    def points(values: Sequence[float | None], ceiling: float) -> list[str]:
        pairs = zip(seconds, values, strict=True)
        return [
            f"{width * min(1.0, s / end):.1f} {height - (height - 1) * min(1.0, v / ceiling):.1f}"
            for s, v in pairs
            if v is not None
        ]

    drawn, active = points(power, full_w), points(busy, 1.0)
    if len(drawn) > 1:
        first, last = drawn[0].split()[0], drawn[-1].split()[0]
        parts.append(f'<path class="power" d="M{first} {height}L{"L".join(drawn)}L{last} {height}Z"/>')
    if len(active) > 1:
        parts.append(f'<path class="busy" d="M{"L".join(active)}"/>')
    return _svg(width, height + 2, "Power and utilization over the run", parts)


def meter(ratio: float | None, style: str) -> str:
    """A horizontal bar from 0 to 100 %; an unknown value is an empty dashed one."""
    if ratio is None:
        return f'<span class="meter unknown" title="{ABSENT}"></span>'
    return f'<span class="meter"><i class="{style}" style="width:{100 * min(1.0, max(0.0, ratio)):.1f}%"></i></span>'


def _grid(left: float, right: float, ceiling: float, y, steps: int) -> str:  # type: ignore[no-untyped-def]
    lines = []
    for index in range(steps + 1):
        value = ceiling * index / steps
        style = "axis" if index == 0 else "grid"
        lines.append(f'<path class="{style}" d="M{left} {y(value):.1f}H{right}"/>')
        lines.append(f'<text class="tick" x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(figure(value))}</text>')
    return "".join(lines)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = "large" if width > 400 else "small"
    return f'<svg class="{size}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
