# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate as a process of its own, by the command line, for the tests of what can happen to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[3] / "tools" / "inferops"
KIMI = ("--pp-size", "8", "--served-model-name", "kimi", "--enable-metrics")
PLAN = {
    "input_tokens": 32,
    "output_tokens": 16,
    "min_seconds_per_point": 0.2,
    "max_seconds_per_point": 20,
    "stall_timeout_s": 3,
    "points": [{"concurrency": level, "min_output_tokens_per_s": 1} for level in (1, 4)],
}
LONG = {**PLAN, "min_seconds_per_point": 100, "max_seconds_per_point": 100}
# The first request that counts has ended.
IN_WINDOW = '"phase":"window"'
ENDS_WITHIN_S = 40


class Run:
    """One gate by the command line, in a session of its own."""

    def __init__(self, url, folder, plan, *words, **environment):
        folder.mkdir(parents=True, exist_ok=True)
        self.out = folder / "out"
        (folder / "plan.json").write_text(json.dumps(plan))
        command = [PROGRAM, "gate", "--base-url", url, "--plan", folder / "plan.json", "--out", self.out, *words]
        environment = {**os.environ, "INFEROPS_PYTHON": sys.executable, **environment}
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment, start_new_session=True)

    def until(self, words, seconds=30):
        deadline = time.monotonic() + seconds
        while words not in self.told():
            assert self.process.poll() is None and time.monotonic() < deadline, self.told()
            time.sleep(0.05)
        return self

    def told(self):
        """Return all that it has written line by line."""
        return "".join(path.read_text() for path in self.out.glob("*.jsonl"))

    def ended(self):
        """Return the exit status; nothing of its session is left."""
        status = self.process.wait(ENDS_WITHIN_S)
        deadline = time.monotonic() + 3
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == []
        return status

    def processes(self):
        """Live processes of its session."""
        every = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        return sorted(pid for pid in every if session(pid) == self.process.pid)

    def result(self):
        return json.loads((self.out / "result.json").read_text())

    def rendered(self):
        """Render the folder as a person would, and return what the page says."""
        done = subprocess.run(
            [PROGRAM, "report", self.out],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "INFEROPS_PYTHON": sys.executable},
        )
        assert done.returncode == 0, done.stderr
        assert "<html" in (self.out / "report.html").read_text()
        return (self.out / "report.md").read_text()


def session(pid):
    """Session of a live process, None when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[3])


def said(run, text):
    return any(text in reason for reason in run.result()["reasons"])
