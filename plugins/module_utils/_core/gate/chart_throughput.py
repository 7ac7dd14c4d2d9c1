# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Throughput against load on axes of equal ratios: the gap to the bound is the share of it, at one stream as at many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .chart_labels import Labels
from .charts import Scale, floor, grid, line, round_values, svg, text
from .report_format import escape, figure

WIDTH, LEFT, RIGHT, TOP, PLOT = 520.0, 56.0, 22.0, 16.0, 310.0
LEAST = 1e-6
INTERVAL_ROOM = 2.0


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
    heights = _heights(marks)
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
    parts += [_curve([(x(mark.load), y(mark.bound)) for mark in marks if mark.bound is not None], "bound")]
    parts += [_curve([(x(mark.load), y(mark.serial)) for mark in marks if mark.serial is not None], "serial")]
    known = [(x(mark.load), y(mark.value)) for mark in marks if mark.value is not None]
    if len(known) > 1:
        parts.append(line(known, "line thin"))
    taken = -100.0
    for mark in marks:
        parts += _measured(mark, x(mark.load), y)
        if x(mark.load) - taken > 26:
            taken = x(mark.load)
            parts.append(text(taken, TOP + PLOT + 18, f"{mark.load:g}", "strong"))
    parts += _labels(marks, x, y)
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, TOP + PLOT + 38, load))
    parts.append(text(2, TOP - 4, "tok/s", anchor="start"))
    return svg(WIDTH, TOP + PLOT + 44, f"Output tokens per second by {load}, with limit and {bound}", parts)


def _heights(marks: Sequence[Mark]) -> list[float]:
    """What the axis must show; an interval that is far wider than all the rest runs out of it, and does not flatten the rest."""
    sure = [each for mark in marks for each in (mark.value, mark.limit, mark.bound, mark.serial) if each is not None]
    sure = [each for each in sure if each > LEAST]
    ends = [each for mark in marks for each in (mark.low, mark.high) if each is not None]
    return sure + [each for each in ends if sure and min(sure) / INTERVAL_ROOM <= each <= max(sure) * INTERVAL_ROOM]


def _curve(known: Sequence[tuple[float, float]], style: str) -> str:
    if len(known) == 1:
        known = [(known[0][0] - 24, known[0][1]), (known[0][0] + 24, known[0][1])]
    return line(known, style) if known else ""


def _measured(mark: Mark, x: float, y: Scale) -> list[str]:
    parts = []
    if mark.limit is not None:
        parts.append(f'<path class="limit" d="M{x - 16:.1f} {y(mark.limit):.1f}h32"/>')
    if mark.value is None:
        return parts
    if mark.low is not None and mark.high is not None and y(mark.low) - y(mark.high) > 6:
        parts.append(
            f'<path class="whisker" d="M{x - 5:.1f} {y(mark.high):.1f}h10M{x:.1f} {y(mark.high):.1f}V{y(mark.low):.1f}m-5 0h10"/>'
        )
    parts.append(f'<circle class="dot {escape(mark.verdict or "observed")}" cx="{x:.1f}" cy="{y(mark.value):.1f}" r="5"/>')
    return parts


def _labels(marks: Sequence[Mark], x: Scale, y: Scale) -> list[str]:
    """What was measured is always told, then limits and bounds where there is room: the table has them too."""
    labels = Labels()
    for mark in marks:
        for height, reach in ((mark.value, 5), (mark.limit, 5), (mark.bound, 3), (mark.serial, 3)):
            if height is not None:
                labels.keep_free(x(mark.load), y(height), reach)
    for mark in marks:
        if mark.value is not None:
            above, below = (0.0, -12.0, "middle"), (0.0, 22.0, "middle")
            first = (below, above) if mark.limit is not None and mark.limit > mark.value else (above, below)
            labels.put(x(mark.load), y(mark.value), figure(mark.value, 1), "value", (*first, (12.0, 5.0, "start")), must=True)
    for mark in marks:
        if mark.limit is not None:
            beside = ((20.0, 4.0, "start"), (-20.0, 4.0, "end"), (20.0, -6.0, "start"), (20.0, 14.0, "start"))
            labels.put(x(mark.load), y(mark.limit), figure(mark.limit, 1), "fine bad", beside)
    for mark in marks:
        around = ((0.0, -7.0, "middle"), (0.0, 15.0, "middle"), (-10.0, -7.0, "end"), (10.0, 15.0, "start"))
        for height, places in ((mark.bound, around), (mark.serial, (around[1], around[0], around[3], around[2]))):
            if height is not None:
                labels.put(x(mark.load), y(height), figure(height, 0), "fine", places)
    return labels.parts
