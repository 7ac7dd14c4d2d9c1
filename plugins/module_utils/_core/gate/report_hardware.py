# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html about cards and host: busy share and power per stage, and over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import charts
from .card_words import held_back_by, short_ids
from .chart_time import card, shares
from .charts import key
from .report_data import ResultFolder
from .report_format import escape, figure, load_of, mapping, mappings, number, percent, texts

HOST_LINES = {
    "cpu_ratio": ("busy", "thin", "all cores"),
    "busiest_core_ratio": ("watt", "amber flat", "busiest core"),
    "client_cpu_ratio": ("p99", "violet flat", "load client, of one core"),
    "link_ratio": ("line soft", "soft flat", "network, of the link"),
}


def _gpus(folder: ResultFolder) -> list[Mapping[str, Any]]:
    return mappings(folder.result.get("gpus"))


def _names(folder: ResultFolder) -> dict[Any, tuple[str, str]]:
    """(stage or card, short UUID) of every card by its index."""
    short = short_ids([str(gpu["uuid"]) for gpu in _gpus(folder) if gpu.get("uuid")])
    names = {}
    for gpu in _gpus(folder):
        stage = number(gpu.get("stage"))
        place = f"stage {figure(stage)}" if stage is not None else f"card {figure(gpu.get('index'))}"
        names[gpu.get("index") if isinstance(gpu.get("index"), int) else None] = (place, short.get(str(gpu.get("uuid")), ""))
    return names


def stages(folder: ResultFolder) -> str:
    """Mean busy share and power of every card over the windows, by stage."""
    rows, names = [], _names(folder)
    # Without a window nothing was read in one; the cards over time are below all the same.
    for gpu in [each for each in _gpus(folder) if each.get("samples") != 0]:
        power = mapping(gpu.get("power_w"))
        busy, drawn, limit = number(gpu.get("utilization_ratio")), number(power.get("mean")), number(power.get("limit"))
        ratio = drawn / limit if drawn is not None and limit else None
        of = f'<span class="of"> of {figure(limit, 0)}</span>' if limit is not None else ""
        place, short = names[gpu.get("index") if isinstance(gpu.get("index"), int) else None]
        rows.append(
            f'<div class="stage"><span>{escape(place)}<small>{escape(short)}</small></span>{charts.meter(busy, "")}'
            f"<span>{percent(busy)}</span>{charts.meter(ratio, 'amber')}<span>{figure(drawn, 0)}{of} W</span></div>"
        )
    if not rows:
        return ""
    keys = key("", "busy") + key("amber", "power, of its limit")
    return (
        f'<div class="panel"><div class="head"><h3>Stages, mean over the windows</h3><span>{keys}</span></div>{"".join(rows)}'
        f'<p class="note">{escape(_held_back(folder))}</p></div>'
    )


def _held_back(folder: ResultFolder) -> str:
    held = sorted({reason for gpu in _gpus(folder) for reason in texts(gpu.get("throttle"))})
    if held:
        return f"Clocks were held back at times {held_back_by(held)}."
    if all(gpu.get("throttle") is None for gpu in _gpus(folder)):
        return "Whether clocks were held back is not known."
    return "No card reported held-back clocks."


def cards(folder: ResultFolder) -> str:
    """One small chart per card over the whole run, the windows of the points shaded."""
    known = {gpu["index"]: gpu for gpu in _gpus(folder) if isinstance(gpu.get("index"), int)}
    series = [each for each in folder.cards if len(each.seconds) > 1]
    if not series:
        return ""
    end = max(each.seconds[-1] for each in series) or 1.0
    limits = [number(mapping(known.get(each.index, {}).get("power_w")).get("limit")) for each in series]
    stated = [limit for limit in limits if limit]
    shared = charts.nice_ceiling(max((each.peak_w for each in series if each.peak_w is not None), default=1.0))
    names, windows = _names(folder), _windows(folder)
    parts = []
    for each, limit in zip(series, limits, strict=True):
        place, short = names.get(each.index, (f"card {each.index}", ""))
        full = limit if len(stated) == len(series) and limit else shared
        chart = card(each.seconds, each.power_w, each.utilization_ratio, full_w=full, end=end, windows=list(windows.values()))
        parts.append(
            f'<div><div class="head"><h3>{escape(place)} <small>{escape(short)}</small></h3>'
            f"<span>max {figure(each.peak_w, 0)} W</span></div>{chart}</div>"
        )
    scales = sorted(set(stated)) if len(stated) == len(series) else [shared]
    scale = " / ".join(figure(each, 0) for each in scales) + (" W" if len(stated) == len(series) else " W (limit not known)")
    spans = " · ".join(f"{load} {figure(first, 0)}–{figure(last, 0)} s" for load, (first, last) in windows.items())
    keys = key("amber", f"power, full height = {scale}") + key("thin", "busy, full height = 100 %")
    keys += key("shade", "windows") if windows else ""
    return (
        f'<h2>Cards over time</h2><div class="panel"><div class="cards">{"".join(parts)}</div>'
        f'<p class="note">{keys}<br>0–{figure(end, 0)} s. {escape(spans)}</p></div>'
    )


def _windows(folder: ResultFolder) -> dict[str, tuple[float, float]]:
    """The measured windows by load, on the clock of the run."""
    found = ((load_of(folder.point(series)), folder.window_s(series)) for series in folder.series)
    return {load: window for load, window in found if window is not None}


def host(folder: ResultFolder) -> str:
    """Processor and network of the machine the load came from."""
    read = {name: values for name, values in folder.host.shares.items() if name in HOST_LINES}
    chart = shares(
        folder.host.seconds, {HOST_LINES[name][0]: values for name, values in read.items()}, list(_windows(folder).values())
    )
    if not chart or not read:
        return ""
    keys = "".join(key(HOST_LINES[name][1], HOST_LINES[name][2]) for name in read)
    return f'<h2>Load host over time</h2><div class="grid2"><div class="panel">{chart}<p class="note">{keys}</p></div></div>'
