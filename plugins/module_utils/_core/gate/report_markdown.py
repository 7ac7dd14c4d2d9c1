# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The short report for job summaries: verdict, one row per point, limits, diagnosis."""

from __future__ import annotations

from typing import Any

from .report_answers import facts
from .report_data import ResultFolder
from .report_format import (
    bound_ratio,
    cached_share,
    figure,
    interval,
    largest_room,
    limit_line,
    load_of,
    mapping,
    mappings,
    percent,
    requests_ended,
    texts,
)


def render_markdown(folder: ResultFolder) -> str:
    """Return the Markdown report. Markup in values is made harmless."""
    result = folder.result
    verdict = str(result.get("verdict")) if folder.finished else "unfinished"
    engine = mapping(result.get("engine"))
    lines = [f"# Throughput gate: {_text(verdict)}", ""]
    if engine.get("simulated"):
        lines += ["**Simulated engine: no figure here was measured on a GPU.**", ""]
    if not folder.finished:
        lines += ["The run ended before a verdict; what it left is below.", ""]
    lines += [f"- {_text(reason)}" for reason in texts(result.get("reasons"))]
    lines += [*(f"- {_text(room)}" for room in largest_room(folder.points)), *_table(folder)]
    limits = [(point, limit) for point in folder.points for limit in mappings(point.get("limits"))]
    if limits:
        lines += [
            "",
            "## Limits",
            *(f"- {load_of(point)}: **{_text(limit.get('verdict'))}**, {_text(limit_line(limit))}" for point, limit in limits),
        ]
    told = facts(folder)
    if told:
        lines += ["", "## Answers"]
        lines += [f"- {title}: {f'**{_text(verdict)}**, ' if verdict else ''}{_text(text)}" for title, text, verdict in told]
    found = mappings(result.get("diagnosis"))
    if found:
        lines += ["", "## Diagnosis"]
        lines += [
            f"- **{_text(item.get('code'))}** {_text(item.get('message'))}  \n  do: {_text(item.get('do'))}" for item in found
        ]
    return "\n".join(lines) + "\n"


def _table(folder: ResultFolder) -> list[str]:
    """One row per point; without a point there is no table."""
    confidence = mapping(folder.result.get("plan")).get("confidence")
    sure = "95 %" if confidence is None else percent(confidence)
    lines = [
        "",
        f"| load | tok/s | {sure} interval | bound | of bound | TTFT p50 / p90 ms | TPOT p50 ms | requests ok | verdict |",
        "| :-- | --: | :-: | --: | --: | --: | --: | --: | :-- |",
    ]
    for point in folder.points:
        ttft, tpot, requests = (mapping(point.get(key)) for key in ("ttft_ms", "tpot_ms", "requests"))
        cells = (
            load_of(point),
            figure(point.get("output_tokens_per_s"), 1),
            interval(point.get("ci")),
            figure(point.get("bound_tokens_per_s"), 0),
            percent(bound_ratio(point)),
            f"{figure(ttft.get('p50'), 0)} / {figure(ttft.get('p90'), 0)}",
            figure(tpot.get("p50"), 1),
            ", ".join(filter(None, (requests_ended(requests), cached_share(point)))),
            _text(point.get("verdict") or "observed"),
        )
        lines.append("| " + " | ".join(cell.replace(" … ", "\u00a0…\u00a0") for cell in cells) + " |")
    return lines if folder.points else []


def _text(value: Any) -> str:
    """Return text that cannot open markup, a table cell or HTML."""
    text = " ".join(str(value).split())
    for mark in ("\\", "`", "*", "[", "]", "|"):
        text = text.replace(mark, "\\" + mark)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
