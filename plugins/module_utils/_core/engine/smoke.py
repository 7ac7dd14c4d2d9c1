# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Import SGLang's argument module in a new environment: what an environment of the wrong builds fails at first."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

MODULE = "sglang.srt.server_args"
TIMEOUT_S = 300
_BROKEN = re.compile(r"ModuleNotFoundError|undefined symbol|SyntaxError|cannot import name")


@dataclass(frozen=True)
class Smoke:
    text: str
    blocks: bool


def import_arguments(python: str, *, torch_pinned: bool) -> Smoke:
    """Return what came of it. A lock without torch is not imported; a failure for want of a GPU is said, any other blocks."""
    if not torch_pinned:
        return Smoke(f"{MODULE} was not imported: the lock has no torch", blocks=False)
    try:
        done = subprocess.run(
            [python, "-I", "-c", f"import {MODULE}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Smoke(f"{MODULE} was not imported within {TIMEOUT_S} s", blocks=False)
    if done.returncode == 0:
        return Smoke(f"{MODULE} can be imported", blocks=False)
    last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return Smoke(f"{MODULE} cannot be imported: {last}", blocks=_BROKEN.search(last) is not None)
