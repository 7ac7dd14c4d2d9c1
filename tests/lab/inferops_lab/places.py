"""Where the lab keeps things: one cache folder, safe to delete at any time."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def cache(*parts: str) -> Path:
    """Return a path below $INFEROPS_CACHE (default ~/.cache/inferops); its folder exists afterwards."""
    root = Path(os.environ.get("INFEROPS_CACHE") or Path.home() / ".cache" / "inferops")
    path = root.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """Return 12 hex digits over texts and file contents, in order; a folder counts with every file below it."""
    total = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            total.update(len(piece).to_bytes(8, "big") + piece)
    return total.hexdigest()[:12]


def _pieces(part: str | bytes | Path) -> Iterator[bytes]:
    if isinstance(part, Path) and part.is_dir():
        for path in sorted(p for p in part.rglob("*") if p.is_file()):
            name = path.relative_to(part)
            # What tools leave beside sources (.mypy_cache, __pycache__) decides nothing.
            if not any(piece == "__pycache__" or piece.startswith(".") for piece in name.parts):
                yield str(name).encode()
                yield path.read_bytes()
    elif isinstance(part, Path):
        yield part.read_bytes()
    else:
        yield part.encode() if isinstance(part, str) else part


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold one of the cache's locks, so that two runs side by side build a thing once."""
    with cache("locks", name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
