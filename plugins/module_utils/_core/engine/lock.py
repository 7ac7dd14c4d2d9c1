# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A lock as uv pip compile or pip-compile writes it: what it pins, and for which Python it was resolved."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InferopsError
from .requirements import marker_holds, normal_name

_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)[ \t]*(?:;([^\\\n]*?))?[ \t]*(?:--hash|\\|$)", re.MULTILINE)
_PYTHON = re.compile(r"--python-version[ =](\d+\.\d+)|\bwith Python (\d+\.\d+)")
_PLATFORM = re.compile(r"--python-platform[ =](\w+?)-manylinux_(\d+)_(\d+)")


@dataclass(frozen=True)
class Pin:
    """One package of a lock."""

    name: str
    version: str
    marker: str

    def counts(self, values: Mapping[str, str]) -> bool:
        """Return whether it is installed on that interpreter; in doubt it is."""
        return not self.marker or marker_holds(self.marker, values) is not False


@dataclass(frozen=True)
class Lock:
    """``python``, ``machine`` and ``glibc`` are what its own head says that it was resolved for; None where it does not."""

    text: str
    pins: tuple[Pin, ...]
    python: str | None
    machine: str | None
    glibc: tuple[int, int] | None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def version(self, name: str) -> str | None:
        """Return the version that is pinned of a package; None where it is not part of the lock."""
        return next((pin.version for pin in self.pins if pin.name == name), None)


def read_lock(text: str, version: str, where: str) -> Lock:
    """Return the lock; raises InferopsError where it does not pin that release of SGLang with hashes."""
    pins = tuple(Pin(normal_name(m[1]), m[2], (m[3] or "").strip()) for m in _PIN.finditer(text))
    head = "\n".join(line for line in text.splitlines()[:20] if line.startswith("#"))
    python, platform = _PYTHON.search(head), _PLATFORM.search(head)
    lock = Lock(
        text,
        pins,
        (python[1] or python[2]) if python else None,
        platform[1] if platform else None,
        (int(platform[2]), int(platform[3])) if platform else None,
    )
    found = lock.version("sglang")
    if found != version or "--hash=sha256:" not in text:
        what = "has no hashes" if found == version else f"pins sglang=={found}" if found else "pins no sglang"
        raise InferopsError(
            f"the lock is not there or does not pin sglang=={version} with hashes",
            where=where,
            why="the file is empty or was not found" if not text.strip() else f"it {what}",
            do=f"echo sglang=={version} | uv pip compile --generate-hashes - > LOCK, and set sglang_engine_lock",
        )
    return lock
