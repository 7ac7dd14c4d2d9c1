# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html about the measured points: tiles, table, throughput, latencies, timelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import charts
from .diagnosis_evidence import number
from .report_data import ResultFolder, mapping, mappings
from .report_format import ABSENT, bound_ratio, escape, figure, interval, limit_line, percent, requests_ended


def key(style: str, text: str) -> str:
    return f'<span class="key"><i class="{style}"></i>{escape(text)}</span>'


def badge(verdict: Any) -> str:
    word = str(verdict or "observed")
    return f'<span class="badge {escape(word)}">{escape(word)}</span>'


def limit_on(point: Mapping[str, Any], metric: str) -> float | None:
    return next((number(limit.get("limit")) for limit in mappings(point.get("limits")) if limit.get("metric") == metric), None)


def speed_limit(point: Mapping[str, Any]) -> float | None:
    """The least tok/s this point has to reach, None when it has no such limit."""
    return next(
        (
            number(limit.get("limit"))
            for limit in mappings(point.get("limits"))
            if limit.get("metric") == "min_output_tokens_per_s"
        ),
        None,
    )


def tiles(folder: ResultFolder) -> str:
    """One tile per point: the figure, and how far it is to the bound."""
    parts = []
    for point in folder.points:
        ratio, bound, limit = bound_ratio(point), number(point.get("bound_tokens_per_s")), speed_limit(point)
        reach = f"{percent(ratio)} of the bound, {figure(bound, 0)} tok/s" if bound is not None else "bound not known"
        needs = f" · needs {figure(limit, 1)}" if limit is not None else ""
        parts.append(
            f'<div class="panel tile"><div class="top"><p>{figure(point.get("concurrency"))} in flight{needs}</p>'
            f"{badge(point.get('verdict'))}</div>"
            f"<b>{figure(point.get('output_tokens_per_s'), 1)} <small>tok/s</small></b>"
            f"{charts.meter(ratio, '')}<p>{reach}</p></div>"
        )
    return f'<div class="tiles">{"".join(parts)}</div>' if parts else ""


COLUMNS = ("in flight", "tok/s", "limit", "bound", "of bound", "TTFT p50 / p90", "TPOT p50 / p90", "requests ok", "verdict")


def table(folder: ResultFolder) -> str:
    """Every point with interval, limit and bound, and every limit on a line of its own."""
    if not folder.points:
        return ""
    confidence = mapping(folder.result.get("plan")).get("confidence")
    rows = "".join(_row(point) for point in folder.points)
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    limits = [(point, limit) for point in folder.points for limit in mappings(point.get("limits"))]
    lines = "".join(
        f'<tr><td class="code">{figure(point.get("concurrency"))} in flight</td>'
        f'<td class="code">{badge(limit.get("verdict"))}</td>'
        f'<td class="text">{escape(limit_line(limit))}</td></tr>'
        for point, limit in limits
    )
    below = f'<h3 style="margin:20px 0 8px">Limits</h3><table class="narrow"><tbody>{lines}</tbody></table>' if lines else ""
    level = f"Intervals at {percent(confidence)} confidence. " if confidence is not None else ""
    note = f'<p class="note">{level}Warm-up and drain are outside. {ABSENT} means not measured or not known, never zero.</p>'
    return (
        f'<h2>Points</h2><div class="panel"><table class="wide"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{below}{note}</div>"
    )


def _row(point: Mapping[str, Any]) -> str:
    ttft, tpot, requests = (mapping(point.get(name)) for name in ("ttft_ms", "tpot_ms", "requests"))
    ended, dummy, others = requests_ended(requests).partition(", ")
    cells = (
        f"<b>{figure(point.get('concurrency'))}</b>",
        f"<b>{figure(point.get('output_tokens_per_s'), 1)}</b><small>{interval(point.get('ci'))}</small>",
        figure(speed_limit(point), 1),
        figure(point.get("bound_tokens_per_s"), 1),
        percent(bound_ratio(point)),
        f"{figure(ttft.get('p50'), 0)} / {figure(ttft.get('p90'), 0)} ms"
        f"<small>p99 {figure(ttft.get('p99'), 0)}, n = {figure(ttft.get('n'))}</small>",
        f"{figure(tpot.get('p50'), 1)} / {figure(tpot.get('p90'), 1)} ms"
        f"<small>p99 {figure(tpot.get('p99'), 1)}, n = {figure(tpot.get('n'))}</small>",
        f"{ended}<small>{others}</small>",
        badge(point.get("verdict")),
    )
    return (
        "<tr>"
        + "".join(f'<td data-label="{escape(name)}">{cell}</td>' for name, cell in zip(COLUMNS, cells, strict=True))
        + "</tr>"
    )


def throughput_chart(folder: ResultFolder) -> str:
    bars = []
    for point in folder.points:
        ci = point.get("ci")
        low, high = (number(ci[0]), number(ci[1])) if isinstance(ci, list) and len(ci) == 2 else (None, None)
        bars.append(
            charts.Bar(
                label=figure(point.get("concurrency")),
                value=number(point.get("output_tokens_per_s")),
                low=low,
                high=high,
                limit=speed_limit(point),
                bound=number(point.get("bound_tokens_per_s")),
                verdict=point.get("verdict"),
            )
        )
    chart = charts.throughput(bars)
    if not chart:
        return ""
    keys = key("", "measured") + key("limit", "limit") + key("dash", "bound of memory bandwidth")
    return (
        f'<div class="panel"><div class="head"><h3>Output tok/s by requests in flight</h3><span>{keys}</span></div>{chart}</div>'
    )


def latency_charts(folder: ResultFolder) -> str:
    """Distributions from the raw requests of the windows, so that a second mode or a tail is seen."""
    panels = []
    for name, title in (("ttft_ms", "Time to first token (TTFT)"), ("tpot_ms", "Time per output token (TPOT)")):
        rows = []
        for samples in folder.samples:
            point = next((point for point in folder.points if point.get("concurrency") == samples.concurrency), {})
            stated = mapping(point.get(name))
            limit = next(
                (found for rank in ("p90", "p50") if (found := limit_on(point, f"max_{name[:4]}_{rank}_ms")) is not None), None
            )
            rows.append(
                charts.Row(
                    figure(samples.concurrency),
                    getattr(samples, name),
                    number(stated.get("p50")),
                    number(stated.get("p90")),
                    limit,
                )
            )
        chart = charts.latency(rows)
        if chart:
            keys = (
                key("ink", "p50")
                + key("amber", "p90")
                + (key("limit", "limit") if any(row.limit is not None for row in rows) else "")
            )
            panels.append(f'<div class="panel"><div class="head"><h3>{title}</h3><span>{keys}</span></div>{chart}</div>')
    return f'<h2>Latency, requests of the window</h2><div class="grid2">{"".join(panels)}</div>' if panels else ""


def timelines(folder: ResultFolder) -> str:
    panels = []
    for line in folder.timelines:
        chart = charts.timeline(line.seconds, line.tokens_per_s, line.window_s)
        if chart:
            panels.append(
                f'<div class="panel"><div class="head"><h3>{figure(line.concurrency)} in flight</h3>'
                f"<span>tok/s</span></div>{chart}</div>"
            )
    if not panels:
        return ""
    return (
        f'<h2>Tokens over time</h2><div class="grid3">{"".join(panels)}</div>'
        f'<p class="note">{key("", "received tok/s")}{key("shade", "measured window")}</p>'
    )
