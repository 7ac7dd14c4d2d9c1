# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which environments may go: never one that runs, that a release refers to or that a unit starts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InferopsError
from .brought import drop_unused
from .container import drop_image
from .hold import held
from .install import partial, remove
from .plan import MARK, is_complete

CACHES = Path("/var/cache/inferops")
UNIT_DIRS = ("/etc/systemd/system", "/run/systemd/system", "/etc/containers/systemd")
_RECORDS = ("releases/*/release.json", "releases/*/argv.json", "releases/*/unit")


@dataclass(frozen=True)
class Use:
    """Who needs an environment: processes, releases, units."""

    by: str
    kind: str


def environments(root: Path) -> list[Path]:
    """Return the complete environments, newest first."""
    there = [path for path in root.glob("*-*") if is_complete(path) and not path.is_symlink()]
    return sorted(there, key=lambda path: (path / MARK).stat().st_mtime_ns, reverse=True)


def uses(folder: Path, state_dir: Path, unit_dirs: Iterable[Path], proc: Path = Path("/proc")) -> list[Use]:
    """Return who needs an environment now; reads the records, the units and what runs."""
    words = str(folder) + "/"
    found = [
        Use(f"release {path.parent.name} of {path.parents[2].name}", "release")
        for pattern in _RECORDS
        for path in state_dir.glob(f"*/{pattern}")
        if words in _text(path)
    ]
    found += [
        Use(f"unit {path.name}", "unit")
        for unit_dir in unit_dirs
        for pattern in ("*.service", "*.container")
        for path in unit_dir.glob(pattern)
        if words in _text(path)
    ]
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdigit() and (words in _text(entry / "cmdline") or words in _text(entry / "maps")):
            found.append(Use(f"process {entry.name}", "process"))
    return list(dict.fromkeys(found))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def to_remove(newest_first: Sequence[Path], needed: Collection[Path], keep: int) -> list[Path]:
    """Return the environments that may go: of those that nothing needs all but the newest ``keep``; a negative one keeps all.

    >>> [str(p) for p in to_remove([Path("c"), Path("b"), Path("a")], {Path("b")}, 1)]
    ['a']
    """
    idle = [folder for folder in newest_first if folder not in needed]
    return idle[keep:] if keep >= 0 else []


def prune(
    root: Path, current: Path, keep: int, state_dir: Path, unit_dirs: Sequence[Path], wait_s: float, *, dry: bool
) -> list[Path]:
    """Remove what may go and return it; the environment of this play stays in any case."""
    there = environments(root)
    if keep < 0 or len(there) <= keep:
        return []
    with held(root, "prunes", wait_s):
        needed = {folder for folder in there if folder == current or uses(folder, state_dir, unit_dirs)}
        gone = to_remove(there, needed, keep)
        for folder in [] if dry else gone:
            _drop(folder)
        if not dry:
            drop_unused(root)
    return gone


def absent(folder: Path, state_dir: Path, unit_dirs: Sequence[Path], wait_s: float, *, dry: bool) -> bool:
    """Remove one environment; return whether there was anything. Raises InferopsError while something needs it."""
    if not folder.exists() and not partial(folder).exists():
        return False
    with held(folder.parent, f"removes {folder.name}", wait_s):
        needed = uses(folder, state_dir, unit_dirs)
        if needed:
            raise InferopsError(
                "this environment is needed and was not removed",
                where=str(folder),
                why=", ".join(use.by for use in needed[:6]) + (f" and {len(needed) - 6} more" if len(needed) > 6 else ""),
                do="deploy another release first; what older releases refer to stays for the way back",
            )
        if not dry:
            _drop(folder)
            remove(partial(folder))
            drop_unused(folder.parent)
    return True


def _drop(folder: Path) -> None:
    """Take the name away first: half of an environment must not pass for one."""
    if folder.exists():
        # What was compiled for it is of no use to another engine.
        for cache in (CACHES / folder.name, *CACHES.glob(f"{folder.name}-*")):
            remove(cache)
        drop_image(folder)
        aside = partial(folder)
        remove(aside)
        folder.rename(aside)
        remove(aside)
