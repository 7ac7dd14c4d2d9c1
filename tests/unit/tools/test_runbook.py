"""The table in docs/runbook.md is the classifier's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "runbook.py"
SPEC = importlib.util.spec_from_file_location("runbook", TOOL)
runbook = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runbook)


def test_the_page_is_up_to_date():
    assert runbook.PAGE.read_text() == runbook.page(), "run tools/runbook.py"
