"""The report in a real browser: no sideways scrolling on a phone or a desk, light and dark differ, nothing is asked for."""

from __future__ import annotations

import importlib.util

import pytest
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
