# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html about the cards: busy share and power per stage, and over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import charts
from .diagnosis_evidence import number
from .report_data import ResultFolder, mapping, mappings
from .report_format import escape, figure, percent
from .report_points import key


def _gpus(folder: ResultFolder) -> list[Mapping[str, Any]]:
    return mappings(folder.result.get("gpus"))


def _place(gpu: Mapping[str, Any]) -> str:
    stage = gpu.get("stage")
    return f"stage {figure(stage)}" if stage is not None else f"card {figure(gpu.get('index'))}"


def stages(folder: ResultFolder) -> str:
    """Mean busy share and power of every card, by stage."""
    rows = []
    for gpu in _gpus(folder):
        power = mapping(gpu.get("power_w"))
        busy, drawn, limit = number(gpu.get("utilization_ratio")), number(power.get("mean")), number(power.get("limit"))
        ratio = drawn / limit if drawn is not None and limit else None
        of = f'<span class="of"> of {figure(limit, 0)}</span>' if limit is not None else ""
        rows.append(
            f'<div class="stage"><span>{escape(_place(gpu))}</span>{charts.meter(busy, "")}<span>{percent(busy)}</span>'
            f"{charts.meter(ratio, 'amber')}<span>{figure(drawn, 0)}{of} W</span></div>"
        )
    if not rows:
        return ""
    held = sorted({str(reason) for gpu in _gpus(folder) for reason in gpu.get("throttle") or ()})
    note = f"Clocks held back: {escape(', '.join(held))}." if held else "No card reported held-back clocks."
    if all(gpu.get("throttle") is None for gpu in _gpus(folder)):
        note = "Whether clocks were held back is not known."
    keys = key("", "busy") + key("amber", "power of its limit")
    return (
        f'<div class="panel"><div class="head"><h3>Stages, mean over the run</h3><span>{keys}</span></div>{"".join(rows)}'
        f'<p class="note">{note}</p></div>'
    )


def cards(folder: ResultFolder) -> str:
    """One small chart per card over the whole run."""
    known = {gpu.get("index"): gpu for gpu in _gpus(folder)}
    series = [card for card in folder.cards if len(card.seconds) > 1]
    if not series:
        return ""
    end = max(card.seconds[-1] for card in series) or 1.0
    seen = max((value for card in series for value in card.power_w if value is not None), default=None)
    limits = [number(mapping(known.get(card.index, {}).get("power_w")).get("limit")) for card in series]
    stated = all(limit for limit in limits)
    parts = []
    for card, limit in zip(series, limits, strict=True):
        gpu = known.get(card.index, {})
        top = limit if stated and limit else charts.nice_ceiling(seen or 1.0)
        stage = gpu.get("stage")
        title = f"card {card.index}" + (f" · stage {figure(stage)}" if stage is not None else "")
        highest = max((value for value in card.power_w if value is not None), default=None)
        parts.append(
            f'<div><div class="head"><h3>{escape(title)}</h3><span>max {figure(highest, 0)} W</span></div>'
            f"{charts.card(card.seconds, card.power_w, card.utilization_ratio, top, end)}</div>"
        )
    scales = sorted({limit for limit in limits if limit}) if stated else [charts.nice_ceiling(seen or 1.0)]
    scale = " / ".join(figure(limit, 0) for limit in scales) + (" W" if stated else " W (limit not known)")
    spans = " · ".join(f"{figure(level)} in flight {figure(start, 0)}–{figure(last, 0)} s" for level, start, last in folder.spans)
    keys = key("amber", f"power, full height = {scale}") + key("thin", "busy, full height = 100 %")
    return (
        f'<h2>Cards over time</h2><div class="panel"><div class="cards">{"".join(parts)}</div>'
        f'<p class="note">{keys}<br>0–{figure(end, 0)} s. {escape(spans)}</p></div>'
    )
