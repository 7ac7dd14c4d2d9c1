"""Running a playbook as a person would, its output passed through line by line and kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inferops_lab.places import REPOSITORY

RECAP = re.compile(r"^(\S+)\s+:\s+ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
PROGRESS = re.compile(r"^\s*gate  ")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Played:
    """What a playbook did: its status, its text without colours, how long it took, and the largest silence while the gate ran."""

    status: int
    text: str
    seconds: float
    longest_silence_s: float

    def recap(self, host: str) -> dict[str, int] | None:
        """Return ok, changed, unreachable, failed of a host; None when the play ended before its recap."""
        for name, *numbers in RECAP.findall(self.text):
            if name == host:
                return dict(zip(("ok", "changed", "unreachable", "failed"), map(int, numbers), strict=True))
        return None


def play(python: Path, playbook: str, inventories: Sequence[Path], log: Path, *words: str) -> Played:
    """Run a playbook of this repository and return what it did; every line is shown as it comes."""
    argv = [str(python.parent / "ansible-playbook"), playbook, *(w for i in inventories for w in ("-i", str(i))), *words]
    shown = " ".join(os.path.relpath(word, REPOSITORY) if word.startswith(str(REPOSITORY)) else word for word in argv[1:])
    print(f"\n$ ansible-playbook {shown}", flush=True)
    colour = "1" if sys.stdout.isatty() else "0"
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "0",
        "ANSIBLE_FORCE_COLOR": colour,
    }
    log.parent.mkdir(parents=True, exist_ok=True)
    since = time.monotonic()
    last: float | None = None
    silence = 0.0
    kept: list[str] = []
    with (
        log.open("w") as file,
        subprocess.Popen(
            argv, cwd=REPOSITORY, env=environment, text=True, bufsize=1, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            plain = COLOUR.sub("", line)
            now = time.monotonic()
            file.write(f"{now - since:7.1f} {plain}")
            if PROGRESS.match(plain):
                silence, last = max(silence, now - (last or now)), now
            kept.append(plain)
    return Played(process.returncode, "".join(kept), time.monotonic() - since, silence)
