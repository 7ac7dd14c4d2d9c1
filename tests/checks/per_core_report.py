"""A pytest plugin: how long each slow check took as it ends, and per ansible-core how many ran and what was skipped and why."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from pathlib import Path

import pytest

SLOW_FOLDER = "tests/checks/"


class PerCoreReport:
    """Counts of this run, kept in a file; the summary shows those of earlier runs of the same build beside its own."""

    def __init__(self, folder: Path, core: str) -> None:
        self.folder = folder
        self.core = core
        self.counts: Counter[str] = Counter()
        self.skips: Counter[str] = Counter()
        self.remark: str | None = None
        self.writer: pytest.TerminalReporter | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
            if report.outcome == "skipped":
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
                self.skips[reason.removeprefix("Skipped: ")] += 1
            if report.nodeid.startswith(SLOW_FOLDER) and self.writer:
                # Checks that run side by side measure themselves.
                seconds = dict(report.user_properties).get("seconds", report.duration)
                self.writer.write_line(f" {report.nodeid.removeprefix(SLOW_FOLDER)}: {report.outcome} in {seconds:.0f} s")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        allowed = os.environ.get("INFEROPS_ALLOWED_SKIPS")
        unexpected = [reason for reason in self.skips if allowed is not None and allowed not in reason]
        if unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self.remark = f"failed: tests were skipped that must run here ({'; '.join(unexpected)})"
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.core}.json"
        if path.exists():  # what other parts counted on this core
            earlier = json.loads(path.read_text())
            self.counts.update(earlier["counts"])
            self.skips.update(earlier["skips"])
        found = {"core": self.core, "python": platform.python_version(), "counts": self.counts, "skips": self.skips}
        path.write_text(json.dumps(found, indent=2))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for path in sorted(self.folder.glob("*.json")):
            found = json.loads(path.read_text())
            counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(found["counts"].items())) or "nothing ran"
            terminalreporter.write_line(f"ansible-core {found['core']} on Python {found['python']}: {counts}")
            for reason, number in sorted(found["skips"].items()):
                terminalreporter.write_line(f"  skipped {number}: {reason}")
        if self.remark:
            terminalreporter.write_line(self.remark, red=True)


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get("INFEROPS_REPORTS")
    if folder:
        config.pluginmanager.register(PerCoreReport(Path(folder), os.environ["INFEROPS_CORE"]), "per-core-report")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    plugin = session.config.pluginmanager.get_plugin("per-core-report")
    if plugin:
        plugin.writer = session.config.pluginmanager.get_plugin("terminalreporter")
