# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What all charts share: axes, SVG frames, meters. Colours and fonts come from the style sheet; every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .report_format import ABSENT, escape, figure

Scale = Callable[[float], float]


def nice_ceiling(value: float) -> float:
    """Return the next round number an axis can end at.

    >>> [nice_ceiling(value) for value in (0, 7.2, 96, 573)]
    [1.0, 8.0, 100.0, 600.0]
    """
    if value < 1e-9:
        return 1.0
    base = 10.0 ** math.floor(math.log10(value))
    return next(base * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if base * step >= value * 0.999999)


def round_values(low: float, high: float, most: int) -> list[float]:
    """Return round numbers from ``low`` to ``high`` for an axis with equal ratios, at most so many.

    >>> round_values(8, 700, 6), round_values(30, 60, 6), round_values(1, 1e6, 4)
    ([10.0, 20.0, 50.0, 100.0, 200.0, 500.0], [30.0, 40.0, 50.0, 60.0], [1.0, 100.0, 10000.0, 1000000.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= most:
            break
    return found[:: -(-len(found) // most)] if found else []


def grid(left: float, right: float, values: Sequence[float], y: Scale) -> str:
    """Horizontal lines with their values."""
    return "".join(
        f'<path class="grid" d="M{left:.1f} {y(value):.1f}H{right:.1f}"/>'
        + text(left - 8, y(value) + 4, figure(value), anchor="end")
        for value in values
    )


def floor(left: float, right: float, y: float) -> str:
    return f'<path class="axis" d="M{left:.1f} {y:.1f}H{right:.1f}"/>'


def text(x: float, y: float, words: str, style: str = "", anchor: str = "middle") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(points: Sequence[tuple[float, float]], style: str) -> str:
    joined = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{style}" d="M{joined}"/>'


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = "large" if width > 400 else "small"
    return (
        f'<svg class="{size}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def meter(ratio: float | None, style: str) -> str:
    """A horizontal bar from 0 to 100 %; an unknown value is an empty dashed one."""
    if ratio is None:
        return f'<span class="meter unknown" title="{ABSENT}"></span>'
    return f'<span class="meter"><i class="{style}" style="width:{100 * min(1.0, max(0.0, ratio)):.1f}%"></i></span>'


def key(style: str, words: str) -> str:
    """One entry of a chart's legend."""
    return f'<span class="key"><i class="{style}"></i>{escape(words)}</span>'


def panel(title: str, keys: str, chart: str) -> str:
    """A chart with its title and legend."""
    return f'<div class="panel"><div class="head"><h3>{escape(title)}</h3><span>{keys}</span></div>{chart}</div>'
