"""Two small releases of our own, one per way of resolving, and a way to ask them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Answer, Interpreter


@dataclass(frozen=True)
class Release:
    """One of the small releases: ``setattr`` writes on its record, ``declare`` declares beside it."""

    root: Path

    def interpreter(
        self, *, path: Path | None = None, timeout_s: float = 60.0, memory_mib: int = 1024, **env: str
    ) -> Interpreter:
        return Interpreter(
            sys.executable, {"PYTHONPATH": str(path or self.root), **env}, timeout_s=timeout_s, memory_mib=memory_mib
        )

    def ask(self, *argv: str, **options: Any) -> Answer:
        return self.interpreter(**options).ask(["--model-path", "m", *argv])

    def line(self, rel: str, mark: str) -> str:
        """Return file:line of the statement that carries a mark in a comment."""
        lines = (self.root / "sglang" / rel).read_text(encoding="utf-8").splitlines()
        found = [number for number, text in enumerate(lines, start=1) if text.endswith(f"# {mark}")]
        assert len(found) == 1, mark
        return f"{rel}:{found[0]}"


@pytest.fixture
def release(fixtures: Path) -> Callable[[str], Release]:
    return lambda name: Release(fixtures / "live" / name)
