# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Throughput against load on axes of equal ratios: the gap to the bound is the share of it, at one stream as at many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .charts import Scale, floor, grid, line, round_values, svg, text
from .report_format import escape, figure

WIDTH, LEFT, RIGHT, TOP, PLOT = 520.0, 56.0, 22.0, 16.0, 310.0
LEAST = 1e-6


@dataclass(frozen=True)
class Mark:
    """One measured point. None = not measured, no limit, bound not known."""

    load: float
    value: float | None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    bound: float | None = None
    serial: float | None = None
    verdict: str | None = None


def throughput(marks: Sequence[Mark], load: str, bound: str) -> str:
    """Measured tok/s with intervals as dots, limits as bars, the bound and that of a serial pipeline as curves.

    ``load`` names the horizontal axis, ``bound`` says what the upper curve is.
    """
    marks = sorted((mark for mark in marks if mark.load > LEAST), key=lambda mark: mark.load)
    heights = [
        height
        for mark in marks
        for height in (mark.value, mark.low, mark.high, mark.limit, mark.bound, mark.serial)
        if height is not None and height > LEAST
    ]
    if not heights:
        return ""
    low, high = min(heights) / 1.5, max(heights) * 1.3
    least, most = marks[0].load, marks[-1].load

    def x(value: float) -> float:
        room = WIDTH - LEFT - RIGHT - 60
        share = 0.5 if most == least else math.log(value / least) / math.log(most / least)
        return LEFT + 30 + room * share

    def y(value: float) -> float:
        share = math.log(max(value, low) / low) / math.log(high / low)
        return TOP + PLOT * (1 - min(1.0, share))

    parts = [grid(LEFT, WIDTH - RIGHT, round_values(low * 1.05, high, 6), y), floor(LEFT, WIDTH - RIGHT, TOP + PLOT)]
    parts += [_curve([(mark.load, mark.bound) for mark in marks], x, y, "bound")]
    parts += [_curve([(mark.load, mark.serial) for mark in marks], x, y, "serial")]
    known = [(x(mark.load), y(mark.value)) for mark in marks if mark.value is not None]
    if len(known) > 1:
        parts.append(line(known, "line thin"))
    taken = -100.0
    for mark in marks:
        parts += _measured(mark, x(mark.load), y)
        if x(mark.load) - taken > 26:
            taken = x(mark.load)
            parts.append(text(taken, TOP + PLOT + 18, figure(mark.load), "strong"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, TOP + PLOT + 38, load))
    parts.append(text(2, TOP - 4, "tok/s", anchor="start"))
    return svg(WIDTH, TOP + PLOT + 44, f"Output tokens per second by {load}, with limit and {bound}", parts)


def _curve(points: Sequence[tuple[float, float | None]], x: Scale, y: Scale, style: str) -> str:
    known = [(x(load), y(height)) for load, height in points if height is not None]
    if not known:
        return ""
    if len(known) == 1:
        known = [(known[0][0] - 24, known[0][1]), (known[0][0] + 24, known[0][1])]
    labels = "".join(
        text(x(load), y(height) - 7 if style == "bound" else y(height) + 15, figure(height, 0), "fine")
        for load, height in points
        if height is not None
    )
    return line(known, style) + labels


def _measured(mark: Mark, x: float, y: Scale) -> list[str]:
    parts = []
    if mark.limit is not None:
        parts.append(f'<path class="limit" d="M{x - 16:.1f} {y(mark.limit):.1f}h32"/>')
        over = mark.value is None or mark.limit > mark.value
        parts.append(text(x + 20, y(mark.limit) + (0 if over else 8), figure(mark.limit, 1), "fine bad", "start"))
    if mark.value is None:
        return parts
    if mark.low is not None and mark.high is not None and y(mark.low) - y(mark.high) > 6:
        parts.append(
            f'<path class="whisker" d="M{x - 5:.1f} {y(mark.high):.1f}h10M{x:.1f} {y(mark.high):.1f}V{y(mark.low):.1f}m-5 0h10"/>'
        )
    parts.append(f'<circle class="dot {escape(mark.verdict or "observed")}" cx="{x:.1f}" cy="{y(mark.value):.1f}" r="5"/>')
    below = mark.limit is not None and mark.limit > mark.value
    parts.append(text(x, y(mark.value) + (22 if below else -12), figure(mark.value, 1), "value"))
    return parts
