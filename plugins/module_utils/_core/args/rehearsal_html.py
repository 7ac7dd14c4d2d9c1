# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of a rehearsal as one self-contained page: every host with what breaks, changes, and its rewritten command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..gate.report_format import escape
from ..gate.report_style import STYLE
from .findings import Finding
from .rehearsal import HostRehearsal, Rehearsal

_CLASS = {"fine": "pass", "breaks": "fail", "unknown": "inconclusive", "not rehearsed": "fail"}
_OWN = (
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;margin:8px 0 0}"
    ".panel h3{margin:20px 0 8px}.panel h3:first-child{margin-top:0}small.flow{overflow-wrap:anywhere}"
)
_HEADS = ("host", "releases", "verdict", "breaks", "announces, changes")


def render_html(rehearsal: Rehearsal) -> str:
    """Return the page; a host comes first where it is worse."""
    word = rehearsal.verdict
    rows = "".join(_row(host) for host in rehearsal.hosts)
    heads = "".join(f'<th class="text">{head}</th>' for head in _HEADS)
    table = (
        f'<h2>Hosts</h2><div class="panel"><table class="stacked"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    bad = "".join(f"<li>{escape(line.splitlines()[0])}</li>" for line in rehearsal.bad)
    hero = f'<div class="hero {_CLASS[word]}"><h1>{escape(word)}</h1>{f"<ul>{bad}</ul>" if bad else ""}</div>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(word)}: upgrade rehearsal</title><style>{STYLE}{_OWN}</style></head><body><main>"
        f'<p class="kicker">Upgrade rehearsal · {len(rehearsal.hosts)} instances · read from the source, no host was touched</p>'
        f"{hero}{table}{''.join(_section(host) for host in rehearsal.hosts)}</main></body></html>\n"
    )


def _row(host: HostRehearsal) -> str:
    blocking = [finding for finding in host.findings if finding.blocks]
    others = [finding for finding in host.findings if not finding.blocks]
    releases = f"{host.found['from']} → {host.found['to']}" if host.found else None
    breaks = "; ".join(finding.message for finding in blocking) or (host.error or "").partition("\n")[0] or None
    badge = f'<span class="badge {_CLASS[host.verdict]}">{escape(host.verdict)}</span>'
    cells = (f"<b>{escape(host.title)}</b>", escape(releases), badge, escape(breaks), escape(_counts(others)))
    pairs = zip(_HEADS, cells, strict=True)
    return "<tr>" + "".join(f'<td class="text" data-label="{head}">{cell}</td>' for head, cell in pairs) + "</tr>"


def _counts(findings: list[Finding]) -> str | None:
    words = [f"{sum(one.level == level for one in findings)} {level}" for level in dict.fromkeys(one.level for one in findings)]
    return ", ".join(words) or None


def _section(host: HostRehearsal) -> str:
    if host.found is None:
        return f'<h2>{escape(host.title)}</h2><div class="panel"><pre>{escape(host.error)}</pre></div>'
    body = ""
    rewritten: Mapping[str, Any] = host.found.get("rewritten") or {}
    steps = [*rewritten.get("steps", ()), *rewritten.get("left_to_you", ())]
    if steps and rewritten.get("argv"):
        missing = ", without what is left to you" if rewritten.get("left_to_you") else ""
        body += (
            f"<h3>Rewritten{missing}: {escape(rewritten.get('outcome'))}</h3><pre>{escape(shlex.join(rewritten['argv']))}</pre>"
        )
        body += '<table class="narrow" style="margin-top:8px">' + "".join(_step(step) for step in steps) + "</table>"
    found = "".join(_finding(finding) for finding in host.findings)
    body += (
        f'<h3>Findings</h3><table class="narrow">{found}</table>' if found else "<p>Nothing changes for this command line.</p>"
    )
    if host.found.get("alike") is not None:
        undecided = len(host.found.get("undecided") or ())
        different = len(host.found.get("effective") or ())
        body += f'<p class="note">{host.found["alike"]} resolved values alike, {different} different, {undecided} not decided</p>'
    return f'<h2>{escape(host.title)}</h2><div class="panel">{body}</div>'


def _step(step: Mapping[str, Any]) -> str:
    new = " ".join(step["to"]) or ("left to you" if step["kind"] == "stuck" else "left out")
    why = " ".join(str(word) for word in (step.get("reason"), step.get("origin") and f"[{step['origin']}]") if word)
    cells = (" ".join(step["from"]), new, why)
    return "<tr>" + "".join(f"<td class=text>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _finding(finding: Finding) -> str:
    badge = {"error": "error", "advice": "advice"}.get(finding.level, "")
    told = [(label, text) for label, text in (("why", finding.why), ("do", finding.do)) if text]
    lines = "".join(f'<small class="flow"><b>{label}</b> {escape(text)}</small>' for label, text in told)
    level = f'<span class="badge {badge}">{escape(finding.level)}</span>'
    text = f"<td class=text>{escape(finding.message)}{lines}</td>"
    return f'<tr><td class="code">{escape(finding.code)}</td><td class=text>{level}</td>{text}</tr>'
