# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html that draw the points: throughput against load, distributions, tokens over time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .chart_latency import MARKS, Row, latency
from .chart_throughput import Mark, throughput
from .chart_time import timeline
from .charts import key, panel
from .report_data import ResultFolder
from .report_format import load_of, mapping, mappings, number, serial_bound, short_load, speed_limit
from .report_series import PointSeries

BUCKETS = 120
TITLES = {
    "ttft_ms": "Time to first token (TTFT)",
    "itl_ms": "Between tokens (ITL), all gaps",
    "ttft_answer_ms": "Time to first answer token",
    "tpot_ms": "Time per output token (TPOT)",
    "e2e_ms": "Whole request (E2E)",
}
ALWAYS = ("ttft_ms", "itl_ms")


def throughput_charts(folder: ResultFolder) -> str:
    """Closed-loop points against concurrency; open-loop points against arrival rate, on an axis of their own."""
    closed = [point for point in folder.points if number(point.get("rate")) is None]
    arriving = [point for point in folder.points if number(point.get("rate")) is not None]
    parts = ""
    if chart := throughput([_mark(point, "concurrency") for point in closed], "requests in flight", "bound"):
        parts += panel("Output tok/s by requests in flight", _keys(closed), chart)
    offered = [_offered(point) for point in arriving]
    if chart := throughput(offered, "requests per second", "what was asked for"):
        keys = key("dot", "measured") + key("dash", "asked for: rate × output length")
        keys += key("limit", "limit") if any(mark.limit is not None for mark in offered) else ""
        parts += panel("Output tok/s by arrival rate", keys, chart)
    return parts


def _keys(points: list[Mapping[str, Any]]) -> str:
    keys = key("dot", "measured")
    if any(speed_limit(point) is not None for point in points):
        keys += key("limit", "limit")
    if any(number(point.get("bound_tokens_per_s")) is not None for point in points):
        keys += key("dash", "bound of memory bandwidth")
    if any(serial_bound(point) is not None for point in points):
        keys += key("dots", "bound when all share one micro-batch")
    return keys


def _mark(point: Mapping[str, Any], load: str) -> Mark:
    ci = point.get("ci")
    low, high = (number(ci[0]), number(ci[1])) if isinstance(ci, list) and len(ci) == 2 else (None, None)
    return Mark(
        load=number(point.get(load)) or 0.0,
        value=number(point.get("output_tokens_per_s")),
        low=low,
        high=high,
        limit=speed_limit(point),
        bound=number(point.get("bound_tokens_per_s")),
        serial=serial_bound(point),
        verdict=str(point.get("verdict") or "observed"),
    )


def _offered(point: Mapping[str, Any]) -> Mark:
    mark, length = _mark(point, "rate"), number(mapping(point.get("output_tokens")).get("mean"))
    asked = None if length is None else mark.load * length
    return Mark(mark.load, mark.value, mark.low, mark.high, mark.limit, asked, None, mark.verdict)


def latency_charts(folder: ResultFolder) -> str:
    """Distributions from the raw requests of the windows, so that a second mode, a tail or one stall is seen."""
    drawn = {
        name: panel(title, _latency_keys(folder, name), chart) for name, title in TITLES.items() if (chart := _rows(folder, name))
    }
    if _same_answer(folder):
        drawn.pop("ttft_answer_ms", None)
    first, rest = [drawn.pop(name) for name in ALWAYS if name in drawn], list(drawn.values())
    if not first and not rest:
        return ""
    more = f'<details><summary>{len(rest)} more</summary><div class="grid2">{"".join(rest)}</div></details>' if rest else ""
    return f'<h2>Latency, requests of the window</h2><div class="grid2">{"".join(first)}</div>{more}'


def _same_answer(folder: ResultFolder) -> bool:
    """Tell whether nothing came before the answers: then the first token is the first answer token everywhere."""
    return all(series.latencies["ttft_answer_ms"].counts == series.latencies["ttft_ms"].counts for series in folder.series)


def _latency_keys(folder: ResultFolder, name: str) -> str:
    stated = [mapping(point.get(name)) for point in folder.points]
    keys = "".join(key(rank, rank) for rank in MARKS if any(number(each.get(rank)) is not None for each in stated))
    return keys + (key("limit", "limit") if any(_limits(point, name) for point in folder.points) else "")


def _rows(folder: ResultFolder, name: str) -> str:
    rows = []
    for series in folder.series:
        point = folder.point(series)
        stated = mapping(point.get(name))
        marks = {rank: number(stated.get(rank)) for rank in MARKS}
        rows.append(Row(short_load(point), series.latencies[name], marks, _limits(point, name)))
    return latency(rows)


def _limits(point: Mapping[str, Any], name: str) -> list[float]:
    pattern = re.compile(f"max_{name.removesuffix('_ms')}_p[0-9]+_ms")
    found = [number(limit.get("limit")) for limit in mappings(point.get("limits")) if pattern.fullmatch(str(limit.get("metric")))]
    return [limit for limit in found if limit is not None]


def timelines(folder: ResultFolder) -> str:
    """Received tokens of every point over time, warm-up and window marked."""
    panels = []
    for series in folder.series:
        point = folder.point(series)
        chart = timeline(
            *series.per_second(BUCKETS),
            _since_start(folder, series),
            level=number(point.get("output_tokens_per_s")),
            limit=speed_limit(point),
        )
        if chart:
            panels.append(panel(load_of(point), "tok/s", chart))
    if not panels:
        return ""
    keys = (
        key("thin", "received tok/s")
        + key("mean", "figure of the window")
        + key("limit", "limit")
        + key("shade", "window; warm-up before it")
    )
    return f'<h2>Tokens over time</h2><div class="grid3">{"".join(panels)}</div><p class="note">{keys}</p>'


def _since_start(folder: ResultFolder, series: PointSeries) -> tuple[float, float] | None:
    window = folder.window_s(series)
    return None if window is None else (max(0.0, window[0] - series.start_s), max(0.0, window[1] - series.start_s))
