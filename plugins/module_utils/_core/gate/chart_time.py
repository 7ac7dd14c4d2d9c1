# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Charts over time: tokens of one point, power and busy share of one card, shares of the host; windows are shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .charts import Scale, floor, grid, line, nice_ceiling, svg, text
from .report_format import figure

Window = tuple[float, float]


def timeline(
    seconds: Sequence[float],
    values: Sequence[float],
    window: Window | None,
    *,
    level: float | None = None,
    limit: float | None = None,
) -> str:
    """Tokens per second over one point: warm-up before the shaded window, what was cut behind it, the figure as a line."""
    if len(seconds) < 2:
        return ""
    width, left, right, top, plot = 360.0, 44.0, 8.0, 20.0, 110.0
    end = max(seconds[-1] + (seconds[1] - seconds[0]) / 2, window[1] if window else 0.0)
    ceiling = nice_ceiling(max([*values, level or 0.0, limit or 0.0]) * 1.05)

    def x(value: float) -> float:
        return left + (width - left - right) * min(1.0, max(0.0, value / end))

    def y(value: float) -> float:
        return top + plot * (1 - value / ceiling)

    parts = []
    if window is not None:
        parts.append(_band(window, x, top, plot))
        for name, begin, finish in (("warm-up", 0.0, window[0]), ("window", *window), ("cut", window[1], end)):
            if x(finish) - x(begin) > 8.5 * len(name):
                parts.append(text((x(begin) + x(finish)) / 2, top - 7, name, "fine"))
    parts.append(grid(left, width - right, [ceiling / 2, ceiling], y) + floor(left, width - right, y(0)))
    drawn = [(x(moment), y(value)) for moment, value in zip(seconds, values, strict=True)]
    parts.append(line([(drawn[0][0], y(0)), *drawn, (drawn[-1][0], y(0))], "area") + line(drawn, "line"))
    if level is not None and window is not None:
        parts.append(f'<path class="mean" d="M{x(window[0]):.1f} {y(level):.1f}H{x(window[1]):.1f}"/>')
    if limit is not None and window is not None:
        parts.append(f'<path class="limit" d="M{x(window[0]):.1f} {y(limit):.1f}H{x(window[1]):.1f}"/>')
    parts += _clock(end, x, top + plot + 17)
    return svg(width, top + plot + 22, "Output tokens per second over time", parts)


def card(
    seconds: Sequence[float],
    power: Sequence[float | None],
    busy: Sequence[float | None],
    *,
    full_w: float,
    end: float,
    windows: Sequence[Window] = (),
) -> str:
    """Power (area, full height is ``full_w``) and busy share (line, against 100 %) of one card over the run."""
    width, top, plot = 240.0, 4.0, 76.0

    def x(value: float) -> float:
        return width * min(1.0, max(0.0, value / end))

    def y(share: float) -> float:
        return top + plot * (1 - min(1.0, max(0.0, share)))

    parts = [_band(window, x, top, plot) for window in windows]
    parts.append(f'<path class="grid" d="M0 {top}H{width}M0 {top + plot / 2}H{width}"/>')
    drawn = _known(seconds, power, full_w, x, y)
    if len(drawn) > 1:
        parts.append(line([(drawn[0][0], y(0)), *drawn, (drawn[-1][0], y(0))], "power") + line(drawn, "watt"))
    active = _known(seconds, busy, 1.0, x, y)
    if len(active) > 1:
        parts.append(line(active, "busy"))
    parts.append(floor(0, width, y(0)))
    return svg(width, top + plot + 2, "Power and utilization over the run", parts)


def shares(seconds: Sequence[float], lines: Mapping[str, Sequence[float | None]], windows: Sequence[Window]) -> str:
    """Shares from 0 to 100 % over the run, one line each; the key of a line is its style."""
    if len(seconds) < 2:
        return ""
    width, left, right, top, plot = 520.0, 44.0, 8.0, 8.0, 110.0
    end = seconds[-1] or 1.0

    def x(value: float) -> float:
        return left + (width - left - right) * min(1.0, max(0.0, value / end))

    def y(share: float) -> float:
        return top + plot * (1 - min(1.0, max(0.0, share)))

    parts = [_band(window, x, top, plot) for window in windows]
    parts.append(grid(left, width - right, [50.0, 100.0], lambda value: y(value / 100)) + floor(left, width - right, y(0)))
    for style, values in lines.items():
        drawn = _known(seconds, values, 1.0, x, y)
        if len(drawn) > 1:
            parts.append(line(drawn, style))
    parts += _clock(end, x, top + plot + 17)
    return svg(width, top + plot + 22, "Shares of the host over the run, in per cent", parts)


def _band(window: Window, x: Scale, top: float, plot: float) -> str:
    return (
        f'<rect class="window" x="{x(window[0]):.1f}" y="{top}" width="{max(0.0, x(window[1]) - x(window[0])):.1f}" '
        f'height="{plot}"/>'
    )


def _known(
    seconds: Sequence[float], values: Sequence[float | None], full: float, x: Scale, y: Scale
) -> list[tuple[float, float]]:
    pairs = zip(seconds, values, strict=True)
    return [(x(second), y(value / full)) for second, value in pairs if value is not None]


def _clock(end: float, x: Scale, y: float) -> list[str]:
    digits = 0 if end >= 20 else 1
    return [
        text(x(end * part), y, f"{figure(end * part, digits)} s", anchor=anchor)
        for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
