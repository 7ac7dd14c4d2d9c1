"""Lines in SGLang's form on standard error; each process says at its start that it is simulated."""

from __future__ import annotations

import sys
import time


def line(text: str, *, level: str | None = None, rank: str = "") -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    label = f" {level}:" if level else ""
    print(f"[{stamp}{' ' + rank if rank else ''}]{label} {text}", file=sys.stderr, flush=True)


def flush() -> None:
    sys.stderr.flush()
    sys.stdout.flush()
