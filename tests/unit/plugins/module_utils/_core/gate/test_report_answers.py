# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The reports tell what was answered, and let nothing that a model said become markup."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report import write_reports

LIMIT = {"metric": "min_valid_ratio", "limit": 0.7, "value": 0.1, "ci": [0.02, 0.4], "n": 10, "verdict": "fail", "why": None}
ANSWERS = {
    "multi_turn": {"answers": ["kalomi"], "cached_tokens": 832},
    "tool_calls": {
        "items": 10,
        "right": 1,
        "ratio": 0.1,
        "ci": [0.02, 0.4],
        "limits": [LIMIT],
        "verdict": "fail",
        "wrong": [{"kind": "x", "prompt": "call", "answer": "<script>alert(1)</script>", "why": "no JSON"}],
    },
    "long_context": {"input_tokens": 20011, "answer": "1", "ttft_s": 3.25},
}


@pytest.fixture
def reports(tmp_path):
    def written(correctness):
        result = {"verdict": "fail", "finished": True, "points": [], "correctness": correctness}
        (tmp_path / "result.json").write_text(json.dumps(result))
        write_reports(tmp_path)
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    return written


def test_every_probe_is_told_with_its_share_and_limit(reports):
    told = reports(ANSWERS)
    page, short = told["report.html"], told["report.md"]
    for text in ("1 of 10 right", "832 tokens came from the prefix cache", "first token after 3.2 s"):
        assert text in page and text in short
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    cases = {case.get("name"): case for case in ET.fromstring(told["junit.xml"]).iter("testcase")}
    assert cases["tool calls: min_valid_ratio 0.7"].find("failure") is not None


@pytest.mark.parametrize("correctness", [None, {}, [], {"other": {"items": 3}}])
def test_what_was_not_asked_has_no_section(reports, correctness):
    told = reports(correctness)
    assert "Answers" not in told["report.html"] and "Answers" not in told["report.md"]


@pytest.mark.parametrize("correctness", [{"graded": "?"}, {"tool_calls": {"items": None, "limits": [3], "wrong": "x"}}])
def test_what_cannot_be_read_breaks_no_report(reports, correctness):
    assert "<html" in reports(correctness)["report.html"]
