# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the reports tell of the answers: right ones of how many, limits, examples of wrong ones; cached turns, long context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .report_data import ResultFolder
from .report_format import ABSENT, escape, figure, limit_line, mapping, mappings, percent, share_interval
from .report_points import badge

TITLES = {
    "tool_calls": "tool calls",
    "graded": "graded set",
    "multi_turn": "cached turns",
    "long_context": "long context",
}


def answer_limits(folder: ResultFolder) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every judged limit on answers with the title of its probe."""
    found = mapping(folder.result.get("correctness"))
    return [(title, limit) for key, title in TITLES.items() for limit in mappings(mapping(found.get(key)).get("limits"))]


def facts(folder: ResultFolder) -> list[tuple[str, str, Any]]:
    """Return (title, what was seen, verdict or None) of every probe that ran."""
    rows = []
    for key, title in TITLES.items():
        probe = mapping(mapping(folder.result.get("correctness")).get(key))
        if not probe:
            continue
        if "items" in probe:
            share = f"{figure(probe.get('right'))} of {figure(probe.get('items'))} right, {percent(probe.get('ratio'))}"
            rows.append((title, f"{share} ({share_interval(probe.get('ci'))})", probe.get("verdict")))
        elif key == "multi_turn":
            rows.append((title, f"{figure(probe.get('cached_tokens'))} tokens came from the prefix cache", None))
        else:
            told = f"{figure(probe.get('input_tokens'))} tokens, first token after {figure(probe.get('ttft_s'), 1)} s"
            rows.append((title, told, None))
    return rows


COLUMNS = ("probe", "seen", "limits", "verdict")


def answers(folder: ResultFolder) -> str:
    """Section of the page: one row per probe with its limits, then what was answered wrongly."""
    limits = answer_limits(folder)
    rows = ""
    for title, seen, verdict in facts(folder):
        asked = "<br>".join(escape(limit_line(limit)) for of, limit in limits if of == title) or ABSENT
        cells = (f"<b>{escape(title)}</b>", escape(seen), asked, ABSENT if verdict is None else badge(verdict))
        pairs = zip(COLUMNS, cells, strict=True)
        rows += "<tr>" + "".join(f'<td class="text" data-label="{name}">{cell}</td>' for name, cell in pairs) + "</tr>"
    if not rows:
        return ""
    head = "".join(f'<th class="text">{name}</th>' for name in COLUMNS)
    table = f'<table class="stacked"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<h2>Answers</h2><div class="panel">{table}{_wrong(mapping(folder.result.get("correctness")))}</div>'


def _wrong(found: Mapping[str, Any]) -> str:
    wrong = "".join(
        f'<tr><td class="text">{escape(one.get("prompt"))}</td><td class="text"><code>{escape(one.get("answer"))}</code></td>'
        f'<td class="text">{escape(one.get("why"))}</td></tr>'
        for key in TITLES
        for one in mappings(mapping(found.get(key)).get("wrong"))
    )
    if not wrong:
        return ""
    return f'<details><summary>wrong answers</summary><table class="narrow"><tbody>{wrong}</tbody></table></details>'
