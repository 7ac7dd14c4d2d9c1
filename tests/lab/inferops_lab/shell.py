"""Running programs: output kept for the message when one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from _core.errors import InferopsError

TAIL_LINES = 15


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    do: str = "see the output above",
    timeout_s: float | None = None,
    stdin: str | None = None,
) -> str:
    """Return stdout of a program that succeeded; else raise InferopsError with the end of what it printed."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, env={**os.environ, **(env or {})}, text=True, capture_output=True, check=False, timeout=timeout_s, input=stdin
        )
    except FileNotFoundError as exc:
        raise InferopsError(f"{words[0]} is not installed", where=" ".join(words), do=do) from exc
    except subprocess.TimeoutExpired as exc:
        raise InferopsError(f"{words[0]} did not end within {timeout_s:.0f} s", where=" ".join(words), do=do) from exc
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-TAIL_LINES:])
        raise InferopsError(f"{words[0]} failed with status {done.returncode}", where=" ".join(words), why=tail, do=do)
    return done.stdout


def succeeds(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> bool:
    """Say whether a program ends with status 0."""
    try:
        run(argv, env=env)
    except InferopsError:
        return False
    return True


class Step:
    """A step that takes a while: says that it begins, and how long it took."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.since = time.monotonic()

    def __enter__(self) -> None:
        say(f"{self.text} …")

    def __exit__(self, kind: object, *_: object) -> None:
        say(f"{self.text}: {'failed after' if kind else 'done in'} {time.monotonic() - self.since:.0f} s")


def say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)
