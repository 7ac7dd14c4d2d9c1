#!/usr/bin/env python3
"""Write the table of engine failures in docs/runbook.md from the classifier's own table."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins" / "module_utils"))

from _core.release.causes import CAUSES, Cause  # noqa: E402

PAGE = ROOT / "docs" / "runbook.md"
BEGIN = "<!-- causes: written by tools/runbook.py from plugins/module_utils/_core/release/causes.py -->"
END = "<!-- end of causes -->"


def row(cause: Cause) -> str:
    sign = f"`{cause.pattern}`" if cause.pattern else "no line at all"
    when = f", after stage {' or '.join(cause.stages)}" if cause.stages else ""
    look = f"<br>`{cause.look}`" if cause.look else ""
    cells = [f"`{cause.code}`", cause.what, sign + when, cause.do + look, cause.seen]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def page() -> str:
    """Return the page as it should be."""
    head, dummy, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    table = ["| Code | Cause | Sign in the log | Do, look | Seen |", "| --- | --- | --- | --- | --- |", *map(row, CAUSES)]
    return head + "\n".join([BEGIN, "", *table, "", END]) + tail


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
