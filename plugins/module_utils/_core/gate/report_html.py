# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""report.html as one self-contained page: the verdict first, then how far from the bound, then why, then the evidence."""

from __future__ import annotations

from typing import Any

from . import report_answers, report_charts, report_context, report_hardware, report_points
from .report_data import ResultFolder
from .report_format import escape, largest_room, mapping, mappings, sentence, texts
from .report_style import STYLE


def _reach(folder: ResultFolder) -> str:
    """Throughput and stages side by side: how much was reached, and which cards did the work."""
    panels = report_charts.throughput_charts(folder) + report_hardware.stages(folder)
    return f'<h2>Throughput and stages</h2><div class="grid2">{panels}</div>' if panels else ""


SECTIONS = (
    report_points.tiles,
    report_points.table,
    report_answers.answers,
    report_context.diagnosis,
    _reach,
    report_charts.latency_charts,
    report_charts.timelines,
    report_hardware.cards,
    report_hardware.host,
    report_context.arguments,
    report_context.check_findings,
    report_context.environment,
    report_context.assumptions,
)


def render_html(folder: ResultFolder) -> str:
    """Return the page. A section without anything to show is left out, never filled with zeros."""
    body = "".join(section(folder) for section in SECTIONS)
    verdict = folder.verdict
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(verdict)}: throughput gate {escape(_model(folder) or '')}</title><style>{STYLE}</style></head>"
        f"<body><main>{_head(folder, verdict)}{body}</main></body></html>\n"
    )


def _model(folder: ResultFolder) -> Any:
    resolved = mapping(mapping(folder.result.get("engine")).get("resolved"))
    return mapping(folder.result.get("plan")).get("model") or resolved.get("served_model_name")


def _head(folder: ResultFolder, verdict: str) -> str:
    result = folder.result
    engine, release = mapping(result.get("engine")), mapping(result.get("release"))
    words = ["Throughput gate", _model(folder), f"SGLang {engine['version']}" if engine.get("version") else None]
    words += [f"release {release['id']}" if release.get("id") else None, result.get("started_at")]
    kicker = " · ".join(escape(word) for word in words if word)
    banner = ""
    if engine.get("simulated"):
        banner = '<p class="banner">Simulated engine: no figure on this page was measured on a GPU.</p>'
    return f'<p class="kicker">{kicker}</p>{banner}{_hero(folder, verdict)}'


def _hero(folder: ResultFolder, verdict: str) -> str:
    reasons = texts(folder.result.get("reasons"))
    said = []
    if not folder.finished:
        last = f" Last words: {folder.progress[-1]}" if folder.progress else ""
        said.append(f"The run ended before a verdict; nothing was decided. What it left is below.{last}")
    elif verdict == "pass" and not reasons:
        verdicts = [limit.get("verdict") for point in folder.points for limit in mappings(point.get("limits"))]
        held = f"{verdicts.count('pass')} of {len(verdicts)} limits held."
        said.append(held if verdicts else "No limit was set; figures are observed only.")
    said += largest_room(folder.points)  # Each point's own stands below its figure.
    lines = "".join(f"<p>{escape(sentence(line))}</p>" for line in said)
    lines += "<ul>" + "".join(f"<li>{escape(reason)}</li>" for reason in reasons) + "</ul>" if reasons else ""
    return f'<section class="hero {escape(verdict)}"><h1>{escape(verdict)}</h1>{lines}</section>'
