# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host is, as far as an engine cares: interpreter, C library, file system, driver. Reads only."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .wheels import Target

# Runs in whatever interpreter is asked, so it is plain enough for an old one.
_QUESTION = """
import json, os, platform, sys
try:
    import importlib.util as u
    has = lambda name: u.find_spec(name) is not None
except ImportError:
    has = lambda name: False
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, ValueError, OSError):
    libc = ""
v = sys.version_info
print(json.dumps({
    "version": list(v[:3]), "libc": libc, "venv": has("ensurepip") and has("venv"), "pip": has("pip"),
    "marker": {
        "python_version": "%d.%d" % v[:2], "python_full_version": platform.python_version(), "os_name": os.name,
        "sys_platform": sys.platform, "platform_machine": platform.machine(), "platform_system": platform.system(),
        "platform_python_implementation": platform.python_implementation(), "implementation_name": sys.implementation.name,
        "platform_release": platform.release(), "platform_version": platform.version(),
    },
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python on the host; ``marker`` holds what environment markers ask for."""

    path: str
    version: tuple[int, int, int]
    libc: str
    has_venv: bool
    has_pip: bool
    marker: Mapping[str, str]

    @property
    def target(self) -> Target:
        return Target(self.version[:2], self.marker["platform_machine"], glibc_version(self.libc))

    @property
    def dotted(self) -> str:
        return ".".join(map(str, self.version))


@dataclass(frozen=True)
class Place:
    """Where environments go, by the nearest folder that is there: is it writable, may code run from it, how much is free."""

    path: Path
    existing: Path
    writable: bool
    read_only: bool
    noexec: bool
    free_bytes: int


def glibc_version(libc: str) -> tuple[int, int] | None:
    """Return the version out of what confstr says; None for another C library.

    >>> glibc_version("glibc 2.36")
    (2, 36)
    """
    name, dummy, version = libc.partition(" ")
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if name == "glibc" and len(parts) > 1 and all(p.isdigit() for p in parts[:2]) else None


def ask_interpreter(path: str) -> Interpreter | str:
    """Return what an interpreter says of itself, or why it says nothing."""
    try:
        done = subprocess.run([path, "-I", "-c", _QUESTION], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return getattr(exc, "strerror", None) or str(exc)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    try:
        said = json.loads(done.stdout)
        major, minor, micro = said["version"]
        return Interpreter(path, (major, minor, micro), said["libc"], said["venv"], said["pip"], said["marker"])
    except (ValueError, KeyError, TypeError):
        return "it does not answer as a Python does"


def look_at(path: Path) -> Place:
    """Return what can be known of a folder that need not be there yet."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    found = os.statvfs(existing)
    return Place(
        path,
        existing,
        existing.is_dir() and os.access(existing, os.W_OK | os.X_OK),
        bool(found.f_flag & os.ST_RDONLY),
        bool(found.f_flag & getattr(os, "ST_NOEXEC", 0)),
        found.f_bavail * found.f_frsize,
    )


def driver_version(sys_root: Path = Path("/")) -> str | None:
    """Return the version of the NVIDIA kernel module that is loaded; None where none is."""
    try:
        return (sys_root / "sys/module/nvidia/version").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
