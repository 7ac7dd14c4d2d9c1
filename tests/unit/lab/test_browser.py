"""The report in a real browser: no sideways scrolling on a phone or a desk, light and dark differ, nothing is asked for."""

from __future__ import annotations

import importlib.util

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rehearsal import Rehearsal
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rehearsal_html import render_html
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report import write_reports
from inferops_lab.browser import Browser, executable

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def page_file(fixtures, tmp_path_factory):
    spec = importlib.util.spec_from_file_location("make_results", fixtures / "results" / "make_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("page")
    module.write(folder, *module.build("slow"))
    write_reports(folder)
    return folder / "report.html"


LONG = 'it is an ambiguous short form there: "ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, more"'
FOUND = {
    **{"from": "0.5.12", "to": "0.5.23", "verdict": "breaks", "alike": 351, "effective": {"a": 1}, "undecided": []},
    "findings": [
        {"code": "SGA601", "level": "error", "message": "--cuda-graph-max-bs is gone", "why": LONG, "do": "write " + "x" * 90},
        {"code": "SGA605", "level": "info", "message": "another default: " + "enable_fused_" * 9, "why": LONG},
    ],
    "rewritten": {
        "outcome": "ok",
        "argv": ["--model-path", "/srv/models/" + "k" * 120],
        "steps": [
            {"kind": "rename", "from": ["--cuda-graph-max-bs", "16"], "to": ["--cuda-graph-max-bs-decode"], "reason": LONG}
        ],
    },
}


@pytest.fixture(scope="module")
def rehearsal_file(tmp_path_factory):
    hosts = [
        {"host": "llm-a.example.net", "instance": "kimi", "found": FOUND},
        {"host": "llm-b.example.net", "error": "no config.json\nwhere: sglang_service_model_path"},
    ]
    path = tmp_path_factory.mktemp("rehearsal") / "report.html"
    path.write_text(render_html(Rehearsal.from_list(hosts)), encoding="utf-8")
    return path


def test_the_rehearsal_fits_too(rehearsal_file):
    with Browser() as browser:
        for width in (360, 1100):
            assert browser.open(rehearsal_file, width=width, scheme="light").overflow == 0, width


def test_the_page_fits_phone_and_desk_and_follows_the_colour_scheme(page_file):
    pictures = set()
    with Browser() as browser:
        for width in (360, 400, 1100):
            for scheme in ("light", "dark"):
                page = browser.open(page_file, width=width, scheme=scheme)
                assert page.overflow == 0, (width, scheme)
                assert page.value("performance.getEntriesByType('resource').length") == 0
                pictures.add(page.value("getComputedStyle(document.body).backgroundColor"))
        assert page.picture(height=300).startswith(b"\x89PNG")
    assert len(pictures) == 2
