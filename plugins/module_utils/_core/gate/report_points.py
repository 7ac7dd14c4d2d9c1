# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html with the figures of the points: tiles, table, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import charts
from .report_data import ResultFolder
from .report_format import (
    ABSENT,
    bound_ratio,
    cached_share,
    confidence_of,
    escape,
    figure,
    interval,
    limit_line,
    load_of,
    mapping,
    mappings,
    number,
    percent,
    requests_ended,
    sentence,
    serial_bound,
    speed_limit,
)


def badge(verdict: Any) -> str:
    word = str(verdict or "observed")
    return f'<span class="badge {escape(word)}">{escape(word)}</span>'


def tiles(folder: ResultFolder) -> str:
    """One tile per point: the figure, how far it is to the bound, and what a point that passes leaves on the table."""
    parts = []
    for point in folder.points:
        ratio, bound, limit = bound_ratio(point), number(point.get("bound_tokens_per_s")), speed_limit(point)
        reach = f"{percent(ratio)} of the bound, {figure(bound, 0)} tok/s" if bound is not None else "bound not known"
        needs = f" · needs {figure(limit, 1)}" if limit is not None else ""
        room = f'<p class="room">{escape(sentence(point["headroom"]))}</p>' if isinstance(point.get("headroom"), str) else ""
        parts.append(
            f'<div class="panel tile"><div class="top"><p>{load_of(point)}{needs}</p>'
            f"{badge(point.get('verdict'))}</div>"
            f"<b>{figure(point.get('output_tokens_per_s'), 1)} <small>tok/s</small></b>"
            f"{charts.meter(ratio, '')}<p>{reach}</p>{room}</div>"
        )
    return f'<div class="tiles">{"".join(parts)}</div>' if parts else ""


COLUMNS = ("load", "tok/s", "limit", "bound", "TTFT p50 / p99", "ITL p50 / p99", "TPOT p50", "requests ok", "goodput", "verdict")


def table(folder: ResultFolder) -> str:
    """Every point with interval, limit and bound, and every limit on a line of its own."""
    if not folder.points:
        return ""
    rows = "".join(_row(point) for point in folder.points)
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    lines = "".join(_limit_row(point, limit) for point in folder.points for limit in mappings(point.get("limits")))
    below = f'<h3 class="sub">Limits</h3><table class="narrow"><tbody>{lines}</tbody></table>' if lines else ""
    level = confidence_of(folder.result)
    notes = [
        f"Below tok/s: {level}." if level != "interval" else "",
        "Latencies in ms, each with its sample count n; a percentile with too few samples is left out.",
        "Warm-up is outside, and so is what was cut when the window closed.",
        f"{ABSENT} means not measured or not known, never zero.",
    ]
    return (
        f'<h2>Points</h2><div class="panel"><table class="wide"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table>{below}<p class="note">{escape(" ".join(filter(None, notes)))}</p></div>'
    )


def _row(point: Mapping[str, Any]) -> str:
    ttft, itl, tpot = (mapping(point.get(name)) for name in ("ttft_ms", "itl_ms", "tpot_ms"))
    ended, dummy, others = requests_ended(mapping(point.get("requests"))).partition(", ")
    ratio, serial = bound_ratio(point), serial_bound(point)
    bound = figure(point.get("bound_tokens_per_s"), 0)
    below = [f"{percent(ratio)} of it" if ratio is not None else "", f"serial {figure(serial, 0)}" if serial else ""]
    cells = (
        f"<b>{load_of(point)}</b>",
        f"<b>{figure(point.get('output_tokens_per_s'), 1)}</b>{_small(interval(point.get('ci')))}",
        figure(speed_limit(point), 1),
        bound + _small(*below),
        f"{figure(ttft.get('p50'), 0)} / {figure(ttft.get('p99'), 0)}"
        + _small(f"p90 {figure(ttft.get('p90'), 0)}", f"n {figure(ttft.get('n'))}"),
        f"{figure(itl.get('p50'), 1)} / {figure(itl.get('p99'), 1)}"
        + _small(f"p90 {figure(itl.get('p90'), 1)}", f"n {figure(itl.get('n'))}"),
        figure(tpot.get("p50"), 1) + _small(f"p90 {figure(tpot.get('p90'), 1)}"),
        f"{escape(ended)}{_small(*others.split(', '), cached_share(point))}",
        percent(point.get("goodput_ratio")),
        badge(point.get("verdict")),
    )
    return (
        "<tr>"
        + "".join(f'<td data-label="{escape(name)}">{cell}</td>' for name, cell in zip(COLUMNS, cells, strict=True))
        + "</tr>"
    )


def _limit_row(point: Mapping[str, Any], limit: Mapping[str, Any]) -> str:
    why = f'<small class="flow">{escape(limit["why"])}</small>' if limit.get("why") else ""
    return (
        f'<tr><td class="code">{load_of(point)}</td><td class="code">{badge(limit.get("verdict"))}</td>'
        f'<td class="text">{escape(limit_line(limit))}{why}</td></tr>'
    )


def _small(*lines: str) -> str:
    """Lines in small print; those without a value are left out."""
    return "".join(f"<small>{escape(line)}</small>" for line in lines if line and not line.endswith(ABSENT))
