"""Completion in bash, and the help it is drawn from."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def completed(*words: str) -> set[str]:
    """What bash would offer for the last word."""
    line = " ".join(shlex.quote(word) for word in ("tools/inferops", *words))
    script = f". tools/completion/inferops.bash; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _inferops tools/inferops; "
    script += "printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ch",), {"check"}),
        (("check", "--so"), {"--source"}),
        (("gate", "--pl"), {"--plan"}),
        (("check", "--format", "j"), {"json", "junit"}),
        (("check", "--", "--mo"), set()),
    ],
)
def test_bash_offers(words, offered):
    assert completed(*words) == offered


def test_every_command_is_offered_and_help_teaches():
    said = subprocess.run([ROOT / "tools/inferops", "--help"], check=True, capture_output=True, text=True).stdout
    assert {"check", "explain", "flags", "diff", "memory", "gate", "report", "compare"} <= completed("")
    assert "examples:" in said and "exit status: 0 fine" in said
