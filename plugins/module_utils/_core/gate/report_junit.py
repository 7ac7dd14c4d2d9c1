# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate as JUnit: one test case per limit, of speed or of answers, and one for the run as a whole.

A limit that failed is a failure; one without enough proof is an error, so that no reader takes it for passed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from .report_answers import answer_limits
from .report_data import ResultFolder
from .report_format import limit_line, load_of, mapping, mappings, number, texts


def render_junit(folder: ResultFolder) -> str:
    """Return JUnit XML; the suite's counts agree with its cases."""
    result = folder.result
    resolved = mapping(mapping(result.get("engine")).get("resolved"))
    model = mapping(result.get("plan")).get("model") or resolved.get("served_model_name") or "server"
    suite = ET.Element("testsuite", name=_clean(f"inferops.gate.{model}"))
    for point in folder.points:
        for limit in mappings(point.get("limits")):
            name = f"{load_of(point)}: {limit.get('metric')} {limit.get('limit')}"
            _case(suite, name, limit.get("verdict"), f"{limit.get('verdict')}: {limit_line(limit)}", point.get("window_s"))
    for title, limit in answer_limits(folder):
        text = f"{limit.get('verdict')}: {limit_line(limit)}"
        _case(suite, f"{title}: {limit.get('metric')} {limit.get('limit')}", limit.get("verdict"), text, None)
    verdict = result.get("verdict") if folder.finished else None
    reasons = texts(result.get("reasons")) or ["the run ended before a verdict"]
    causes = [f"{item.get('code')}: {item.get('message')}\n  do: {item.get('do')}" for item in mappings(result.get("diagnosis"))]
    # The run has reasons of its own (wrong answers, throttled cards) that no single limit carries.
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    _case(suite, "verdict", verdict, reasons[0] + more, None, body="\n".join([*reasons, *causes]))
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(sum(case.find(kind) is not None for case in cases)))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _case(suite: ET.Element, name: str, verdict: Any, text: str, seconds: Any, *, body: str | None = None) -> None:
    attributes: Mapping[str, str] = {} if number(seconds) is None else {"time": f"{number(seconds):.3f}"}
    case = ET.SubElement(suite, "testcase", {"classname": "inferops.gate", "name": _clean(name), **attributes})
    if verdict == "pass":
        return
    kind = "failure" if verdict == "fail" else "error"
    outcome = ET.SubElement(case, kind, message=_clean(text), type=_clean(str(verdict or "unfinished")))
    outcome.text = _clean(text if body is None else body)


def _clean(text: str) -> str:
    """Drop what XML 1.0 cannot hold at all."""
    return "".join(
        mark
        for mark in text
        if mark in "\t\n\r" or (ord(mark) >= 32 and not 0xD800 <= ord(mark) <= 0xDFFF and ord(mark) not in (0xFFFE, 0xFFFF))
    )
