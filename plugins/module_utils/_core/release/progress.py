# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The progress file of an attempt: one line per step, in words a person reads, secrets cut out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .host import Host
from .redact import scrub


@dataclass
class Progress:
    """Appends lines ``{"t", "phase", "text", …}``; says nothing twice in a row."""

    host: Host
    path: Path
    phase: str = ""
    secrets: tuple[str, ...] = ()
    last: str = field(default="", init=False)

    def say(self, text: str, **numbers: Any) -> None:
        """Add one line."""
        if text == self.last:
            return
        self.last = text
        line = {"t": round(self.host.now(), 3), "phase": self.phase, "text": text, **numbers}
        try:
            self.host.append(self.path, scrub(json.dumps(line), self.secrets))
        except (InferopsError, OSError):
            self.aside(text)  # A line of progress is no reason to give up.

    def aside(self, text: str) -> None:
        """Say something where the disk does not matter: the journal of the runner."""
        sys.stderr.write(f"{scrub(text, self.secrets)}\n")
        sys.stderr.flush()

    def hide(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple({*self.secrets, *secrets})
