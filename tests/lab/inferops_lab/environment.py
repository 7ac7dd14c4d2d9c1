"""The controller's Python environments: one per lock, made once, made again when the lock changes."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from _core.errors import InferopsError

from .controller import OUTSIDE
from .places import REPOSITORY, cache, digest, locked
from .shell import Step, run, succeeds

OLDEST_LOCK = REPOSITORY / "requirements" / "controller-py311.txt"
NEWEST_LOCK = REPOSITORY / "requirements" / "controller-newest.txt"
DEFAULT = REPOSITORY / ".venv"


def check_venv(python: str = sys.executable) -> None:
    """Refuse where Python cannot make an environment: Debian ships that part as a package of its own."""
    if not succeeds([python, "-c", "import ensurepip, venv"]):
        raise InferopsError(
            f"{python} cannot make virtual environments",
            why="the modules venv and ensurepip are missing",
            do="apt-get install -y python3-venv",
        )


def create(folder: Path, python: str = sys.executable) -> Path:
    """Make an empty environment with pip, unless one that works is there; return its Python."""
    with locked(f"venv-{digest([str(folder)])}"):
        return _create(folder, python, "import pip")


def _create(folder: Path, python: str, works: str) -> Path:
    inside = folder / "bin" / "python"
    if not (inside.exists() and succeeds([inside, "-c", works])):
        check_venv(python)
        shutil.rmtree(folder, ignore_errors=True)
        run([python, "-m", "venv", folder])
    return inside


def ensure(folder: Path = DEFAULT, lock: Path = OLDEST_LOCK, python: str = sys.executable) -> Path:
    """Return the Python of an environment that holds exactly what the lock says."""
    stamp = folder / ".made-from"
    version = version_of(python)
    key = digest([lock, version])
    with locked(f"venv-{digest([str(folder)])}"):
        if stamp.exists() and stamp.read_text() == key and (folder / "bin" / "python").exists():
            return folder / "bin" / "python"
        inside = _create(folder, python, f"import pip, sys; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})")
        with Step(f"installing {lock.name} into {folder}"):
            run(
                [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", lock],
                do="make the Python package index reachable for pip, then repeat",
            )
        stamp.write_text(key)
    return inside


def programs(name: str) -> Path:
    """Return the folder of programs that a lock of requirements/ brings, from an environment of their own."""
    lock = REPOSITORY / "requirements" / f"{name}.txt"
    return ensure(cache(f"{name}-programs-{digest([lock, sys.version])}"), lock, sys.executable).parent


def version_of(python: str) -> str:
    return run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def lock_for(python: str) -> Path:
    """Choose the lock by the version of a Python: 3.11 gets the oldest supported ansible-core, later ones the newest."""
    version = version_of(python)
    if tuple(map(int, version.split("."))) < (3, 11):
        raise InferopsError(f"{python} is Python {version}, 3.11 or later is needed", do="install Python 3.11 or later")
    return OLDEST_LOCK if version == "3.11" else NEWEST_LOCK


def oldest_python() -> str | None:
    """Return a Python 3.11 that works on this machine, or None."""
    if os.environ.get("INFEROPS_OLDEST_PYTHON") == "controller" and OUTSIDE not in os.environ:
        return None
    for path in (sys.executable, shutil.which("python3.11")):
        if path and succeeds([path, "-c", "import sys, ssl, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))"]):
            return path
    return None


def newest_python() -> str | None:
    """Return a Python later than 3.11 that works on this machine, or None."""
    found = [sys.executable]
    if os.environ.get("INFEROPS_NEWEST_PYTHON") == "controller" and OUTSIDE not in os.environ:
        return None
    for version in ("3.14", "3.13", "3.12"):
        found += filter(None, [shutil.which(f"python{version}")])
        found += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")))
    for path in found:
        if succeeds([path, "-c", "import sys, ssl, venv, ensurepip; sys.exit(sys.version_info < (3, 12))"]):
            return path
    return None


def of_core(core: str) -> Path:
    """Return the Python of the environment with the oldest or the newest supported ansible-core."""
    if core == "newest":
        python, lock, wanted = newest_python(), NEWEST_LOCK, "3.12 or later"
    else:
        python, lock, wanted = oldest_python(), OLDEST_LOCK, "3.11"
    if python is None:
        raise InferopsError(f"this machine has no working Python {wanted}", do=f"install it: the {core} ansible-core runs on it")
    # The contributor's own environment is the machine's; a controller leaves it alone.
    mine = core == "oldest" and OUTSIDE not in os.environ
    return ensure(DEFAULT if mine else cache(f"venv-{core}-{digest([python])}"), lock, python)
