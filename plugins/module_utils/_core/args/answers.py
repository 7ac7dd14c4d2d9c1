# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder of answers: one file each, written whole or not at all, bounded, and never a reason for a check to fail.

It may be deleted at any time, and any number of processes may use it at once. What cannot be read, is damaged, or belongs to
somebody else is as good as absent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SWITCH = "INFEROPS_CHECK_CACHE"
OFF = ("off", "no", "false", "0")
# A long answer has 150 KiB.
LARGEST = 4 << 20
MOST_FILES = 400
MOST_BYTES = 64 << 20
_PARTS = ("args", "topology")


def default_answers(environ: Mapping[str, str] | None = None) -> Answers | None:
    """Return the folder of this account: INFEROPS_CACHE, else XDG_CACHE_HOME/inferops, else ~/.cache/inferops; None for off."""
    environ = os.environ if environ is None else environ
    if environ.get(SWITCH, "").lower() in OFF:
        return None
    base = environ.get("INFEROPS_CACHE") or ""
    xdg = environ.get("XDG_CACHE_HOME") or ""
    try:
        caches = Path(xdg) if xdg.startswith("/") else Path("~/.cache").expanduser()
        return Answers((Path(base).expanduser() if base else caches / "inferops") / "check")
    except RuntimeError:  # an account without a home
        return None


class Answers:
    """Answers by name. A name is made of everything that was asked and of the code that answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name_of(self, asked: Mapping[str, Any]) -> str | None:
        """Return the name of a question; None for one that JSON cannot hold, or where the code that answers cannot be told.

        The order of mappings counts, as it may for us.
        """
        try:
            text = json.dumps([code_mark(), sys.version, asked])
        except (OSError, TypeError, ValueError, RecursionError):
            return None
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def get(self, name: str) -> dict[str, Any] | None:
        """Return what was put under a name, None where there is nothing whole of our own."""
        try:
            if not _private(self.folder.stat()):
                return None
            handle = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                about = os.fstat(handle)
                if not stat.S_ISREG(about.st_mode) or not _private(about) or about.st_size > LARGEST:
                    return None
                digest, dummy, body = file.read(LARGEST).partition(b"\n")
                if digest != _digest(body):
                    return None
                with contextlib.suppress(OSError):
                    os.utime(handle)  # what is used stays longer
            found = json.loads(body)
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep an answer; where that cannot be done it is not kept."""
        fresh = self.folder / f".{name[:8]}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            body = json.dumps(content).encode("ascii")
            if len(body) > LARGEST - 100:
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _private(self.folder.stat()):
                return
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_digest(body) + b"\n" + body)
                fresh.replace(self.folder / name)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
            self._prune()
        except (OSError, TypeError, ValueError, RecursionError):
            return

    def _prune(self) -> None:
        """Drop the longest unused down to three quarters, once there are too many or too large ones."""
        entries = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):  # another process may have dropped it
                about = entry.stat(follow_symlinks=False)
                entries.append((about.st_mtime_ns, about.st_size, entry.path))
        count, size = len(entries), sum(one[1] for one in entries)
        if count <= MOST_FILES and size <= MOST_BYTES:
            return
        for dummy, one, path in sorted(entries):
            if count <= MOST_FILES * 3 // 4 and size <= MOST_BYTES * 3 // 4:
                break
            with contextlib.suppress(OSError):
                Path(path).unlink()
            count, size = count - 1, size - one


def _private(about: os.stat_result) -> bool:
    """Whether nobody but this account could have put something there."""
    return about.st_uid == os.geteuid() and not about.st_mode & 0o022


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode("ascii")


@functools.cache
def code_mark() -> str:
    """Return a hash of the code that answers; from other code an answer may be another."""
    digest = hashlib.sha256()
    for name, content in sorted(code_files()):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def code_files(core: Path = Path(__file__).parents[1]) -> Iterator[tuple[str, bytes]]:
    """Give the files below _core that a check may come to, by name; out of an archive their checksums stand for them."""
    if core.is_dir():
        for part in ("", *_PARTS):
            for path in (core / part).glob("**/*.py" if part else "*.py"):
                yield path.relative_to(core).as_posix(), path.read_bytes()
        return
    import zipfile  # deferred: only within an archive, as Ansible makes one for each module

    archive = next((one for one in core.parents if one.is_file()), None)
    if archive is None:
        raise OSError(f"nothing to tell the code by at {core}")
    inside = core.relative_to(archive).as_posix() + "/"
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            if entry.filename.startswith(inside):
                yield entry.filename, f"{entry.CRC} {entry.file_size}".encode("ascii")
