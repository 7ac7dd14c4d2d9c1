# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Have a release's own code executed in the oracle's environment: its parser's table, and cases with their outcomes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "fixtures" / "oracle" / "models"
sys.path.insert(0, str(HERE))
from environment import Place  # noqa: E402
from inferops_lab.shell import run  # noqa: E402

LIMIT_S = 1800.0


def flag_table(place: Place, version: str) -> dict[str, Any]:
    """Return the flag table of the release's own parser."""
    return _execute(place, ["--table", version])


def execute(place: Place, cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cases with what the release made of them; ``not_executed`` where this environment is what failed."""
    given = list(cases)
    found = []
    for hardware in dict.fromkeys(case["hardware"] for case in given):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump([case for case in given if case["hardware"] == hardware], file)
            file.flush()
            found += _execute(place, ["--hardware", hardware, "--cases", file.name])
    return found


def _execute(place: Place, words: Sequence[str]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        # Nothing of the caller's Python reaches the release: only the overlay goes before its packages.
        env = {
            "PYTHONPATH": str(place.overlay or ""),
            "PYTHONDONTWRITEBYTECODE": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        command = [place.python, HERE / "execute.py", "--source", place.source, "--models", MODELS, "--out", out, *words]
        run(command, env={**_without_sglang(), **env}, timeout_s=LIMIT_S, do="run the command by hand to see all of it")
        return json.loads(out.read_text(encoding="utf-8"))


def _without_sglang() -> dict[str, str]:
    """Variables of the caller that a release would take for its own are emptied."""
    return {name: "" for name in os.environ if name.startswith(("SGLANG_", "SGL_"))}
