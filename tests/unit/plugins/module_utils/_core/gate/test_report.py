# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reports of whole and partial folders: the verdict leads, absent is a dash, text is escaped, secrets stay out."""

from __future__ import annotations

import importlib.util
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report import write_reports

VOID = {"meta", "br", "rect", "path", "i"}


@pytest.fixture(scope="module")
def results(fixtures, tmp_path_factory) -> Path:
    """The story's slow and fixed run and a killed one, drawn by the generator."""
    spec = importlib.util.spec_from_file_location("make_results", fixtures / "results" / "make_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("results")
    module.main(folder)
    return folder


class Page(HTMLParser):
    """Collects text and checks that every element that opens also closes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.links = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def page(folder):
    write_reports(folder)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["slow", "fixed", "killed"])
def test_every_folder_renders_without_anything_from_outside(results, name):
    shown = page(results / name)
    source = (results / name / "report.html").read_text(encoding="utf-8")
    assert shown.links == []
    assert not re.search(r"https?://|@import|url\(|<script", source)
    assert "nan" not in source and "None" not in "".join(shown.text)
    assert sorted(path.name for path in (results / name).glob(".*")) == []


@pytest.mark.parametrize(("name", "verdict"), [("slow", "fail"), ("fixed", "pass"), ("killed", "unfinished")])
def test_the_verdict_comes_first(results, name, verdict):
    page(results / name)
    source = (results / name / "report.html").read_text(encoding="utf-8")
    assert source.index(f"<h1>{verdict}</h1>") < source.index("<h2>")


def test_figures_of_the_slow_run_stand_beside_limit_and_bound(results):
    text = " ".join(page(results / "slow").text)
    for wanted in (
        "24.7",
        "95.6",
        "33.8",
        "148.5",
        "51 %",
        "GATE-LAUNCH",
        "GATE-FILL",
        "GATE-POWER",
        "kept from an older unit",
        "Simulated",
    ):
        assert wanted in text
    assert "3.7\u00a0× is left on the table" in " ".join(page(results / "fixed").text)


def test_a_partial_result_is_unfinished_whatever_verdict_it_carries(results, tmp_path):
    result = json.loads((results / "fixed" / "result.json").read_text()) | {"finished": False}
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert "unfinished" in page(tmp_path).text
    assert ET.fromstring((tmp_path / "junit.xml").read_text()).find(".//error") is not None


def write(folder, result):
    (folder / "result.json").write_text(json.dumps(result))


EVIL = '<script>alert(1)</script>"&\u0000|*'


def test_all_text_is_escaped(tmp_path):
    limit = {"metric": EVIL, "limit": 1, "value": 0.5, "ci": None, "n": 3, "verdict": "fail"}
    write(
        tmp_path,
        {
            "verdict": "fail", "reasons": [EVIL], "plan": {"model": EVIL}, "notes": [EVIL], "environment": {"host": EVIL},
            "points": [{"concurrency": 1, "limits": [limit], "verdict": EVIL}], "gpus": [{"name": EVIL, "throttle": [EVIL]}],
            "engine": {"version": EVIL, "resolved": {"device": EVIL}}, "release": {"id": EVIL},
            "diagnosis": [{"code": EVIL, "message": EVIL, "do": EVIL, "evidence": {EVIL: EVIL}}],
            "check": {"findings": [{"code": EVIL, "message": EVIL, "accepted": {"reason": EVIL}}]},
        },
    )  # fmt: skip
    shown = page(tmp_path)
    assert sum("<script>alert(1)</script>" in text for text in shown.text) >= 10
    assert "<script" not in (tmp_path / "report.html").read_text() and "<script" not in (tmp_path / "report.md").read_text()
    ET.fromstring((tmp_path / "junit.xml").read_text())


def test_only_listed_arguments_are_printed(tmp_path):
    secret = "sk-very-secret"
    resolved = {"api_key": secret, "admin_api_key": secret, "launch_command": secret, "hf_token": secret, "pp_size": 8}
    write(
        tmp_path,
        {
            "verdict": "pass",
            "engine": {"resolved": resolved},
            "asked": resolved,
            "environment": {"token": secret},
            "api_key": secret,
        },
    )
    text = "".join(page(tmp_path).text)
    for name in ("report.html", "report.md", "junit.xml"):
        assert secret not in (tmp_path / name).read_text()
    assert "pp_size" in text


def test_a_value_that_resolved_otherwise_is_shown_r52(tmp_path):
    write(
        tmp_path,
        {"verdict": "pass", "engine": {"resolved": {"pp_size": 8, "page_size": 64}}, "asked": {"pp_size": 8, "page_size": 1}},
    )
    assert "1 differ from what was asked." in page(tmp_path).text


def test_absent_is_a_dash_and_never_zero(tmp_path):
    write(
        tmp_path, {"verdict": "inconclusive", "points": [{"concurrency": 4, "verdict": "inconclusive"}], "gpus": [{"index": 0}]}
    )
    text = page(tmp_path).text
    assert "0" not in text and "0 %" not in text and "–" in text


def test_zero_is_zero(tmp_path):
    write(
        tmp_path,
        {
            "verdict": "fail",
            "points": [{"concurrency": 1, "output_tokens_per_s": 0.0, "bound_tokens_per_s": 50.0, "verdict": "fail"}],
        },
    )
    assert "0 % of the bound, 50 tok/s" in page(tmp_path).text


@pytest.mark.parametrize("verdict", ["pass", "fail", "inconclusive", None])
def test_junit_has_a_case_per_limit_and_inconclusive_is_an_error_r93(tmp_path, verdict):
    limits = [{"metric": "min_output_tokens_per_s", "limit": 33.8, "value": 30, "ci": [29, 31], "n": 9, "verdict": verdict}]
    limits.append(limits[0] | {"metric": "max_ttft_p99_ms", "verdict": "pass"})
    write(
        tmp_path, {"verdict": verdict, "reasons": ["because"], "points": [{"concurrency": 1, "limits": limits, "window_s": 2.5}]}
    )
    write_reports(tmp_path)
    suite = ET.fromstring((tmp_path / "junit.xml").read_text())
    assert suite.get("tests") == "3" == str(len(suite.findall("testcase")))
    expected = {"pass": ("0", "0"), "fail": ("2", "0"), "inconclusive": ("0", "2"), None: ("0", "2")}[verdict]
    assert (suite.get("failures"), suite.get("errors")) == expected


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(InferopsError, match="not a result folder"):
        write_reports(tmp_path / "nowhere")
    with pytest.raises(InferopsError, match="holds no gate result"):
        write_reports(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage", ["{", "[]", "null", '{"points": 3, "gpus": [1, null], "reasons": null, "diagnosis": {}, "verdict": "pass"}']
)
def test_damaged_files_still_render(results, tmp_path, damage):
    (tmp_path / "result.json").write_text(damage)
    lines = (results / "slow" / "samples.jsonl").read_text().splitlines()[:3]
    broken = [
        "{",
        "3",
        '{"point": 0, "planned_ns": null}',
        '{"point": 0, "concurrency": 1, "planned_ns": 5, "chunks": [[1], null, ["a", 2]]}',
    ]
    (tmp_path / "samples.jsonl").write_text("\n".join([*lines, *broken]))
    (tmp_path / "gpu.jsonl").write_text(
        '{"ns": 1, "gpus": [{"index": 0}, 4]}\n{"ns": 2, "gpus": [{"index": 0, "power_w": 3}]}\n{"ns":'
    )
    page(tmp_path)
