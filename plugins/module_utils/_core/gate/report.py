# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes report.html, report.md and junit.xml into a result folder, from what the run left there."""

from __future__ import annotations

from pathlib import Path

from .report_data import read_folder
from .report_html import render_html
from .report_junit import render_junit
from .report_markdown import render_markdown

REPORTS = {"report.html": render_html, "report.md": render_markdown, "junit.xml": render_junit}


def write_reports(folder: Path) -> None:
    """Render every report of a result folder, whole or partial. Each file is replaced in one step."""
    folder = Path(folder)
    content = read_folder(folder)
    for name, render in REPORTS.items():
        draft = folder / f".{name}.new"
        draft.write_text(render(content), encoding="utf-8")
        draft.replace(folder / name)
