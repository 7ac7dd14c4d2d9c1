# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which revisions go: the oldest beyond a number, never one that a kept release, a unit or a process names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .carry import on_disk

RECORD = ".json"
UNITS = Path("/etc/systemd/system")


@dataclass(frozen=True)
class Pruned:
    names: list[str]
    freed_bytes: int


def prune(model: Path, current: Path, keep: int, state_dir: Path, *, dry: bool, proc: Path = Path("/proc")) -> Pruned:
    """Remove what is beyond ``keep`` further revisions beside ``current``; below 0 everything is kept.

    Only folders with a record of ours count: what somebody else put there is theirs.
    """
    if keep < 0 or not model.is_dir():
        return Pruned([], 0)
    ours = [path for path in model.iterdir() if path.is_dir() and path != current and _record(path).exists()]
    ours.sort(key=lambda path: _record(path).stat().st_mtime, reverse=True)
    texts = list(_uses(state_dir, proc))
    unused = [path for path in ours if not any(_names(text, path) for text in texts)]
    used = len(ours) - len(unused)
    gone = unused[max(0, keep - used) :]
    freed = sum(on_disk(path) for path in gone)
    for path in () if dry else gone:
        _remove(path)
    return Pruned(sorted(path.name for path in gone), freed)


def _record(path: Path) -> Path:
    return path.with_name(f".{path.name}{RECORD}")


def _uses(state_dir: Path, proc: Path) -> Iterable[str]:
    """Yield what names models: releases that are kept, units, command lines of what runs."""
    for path in (*state_dir.glob("*/releases/*/*.json"), *UNITS.glob("*.service"), *proc.glob("[0-9]*/cmdline")):
        try:
            yield path.read_bytes().replace(b"\0", b"\n").decode("utf-8", "replace")
        except OSError:
            continue


def _names(text: str, path: Path) -> bool:
    """A path is named where no further character of its name follows."""
    parts = text.split(str(path))[1:]
    return any(not part or not (part[0].isalnum() or part[0] in "._-") for part in parts)


def _remove(path: Path) -> None:
    """Take the name away first, so that a folder cut short in its removal is never taken for a whole one."""
    aside = path.with_name(f"{path.name}.removed")
    path.rename(aside)
    for parent, dummy, dummy in os.walk(aside):
        Path(parent).chmod(0o755)
    shutil.rmtree(aside)
    for ending in (RECORD, ".lock", ".progress"):
        path.with_name(f".{path.name}{ending}").unlink(missing_ok=True)


def read_only(folder: Path) -> None:
    """Take the right to write from a folder and all in it."""
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
