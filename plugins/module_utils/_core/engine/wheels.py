# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Wheels in a folder: which fits an interpreter, what one says of itself, how much it unpacks to."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_string
from functools import cached_property
from pathlib import Path

from ..errors import InferopsError
from .requirements import normal_name

_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")


@dataclass(frozen=True)
class Target:
    """What a wheel must fit: ``python`` as (3, 12), ``machine`` as x86_64, ``glibc`` as (2, 36) or None when it is not glibc."""

    python: tuple[int, int]
    machine: str
    glibc: tuple[int, int] | None


@dataclass(frozen=True)
class Wheel:
    """A wheel by its file name."""

    path: Path
    name: str
    version: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    @cached_property
    def metadata(self) -> dict[str, list[str]]:
        """Return the fields of its METADATA, names in lower case."""
        return metadata_fields(_member(self.path, ".dist-info/METADATA"))

    def sizes(self) -> tuple[int, int]:
        """Return the bytes that it unpacks to, and the Python source among them."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                files = archive.infolist()
        except (OSError, zipfile.BadZipFile) as exc:
            raise _unreadable(self.path, exc) from exc
        return sum(f.file_size for f in files), sum(f.file_size for f in files if f.filename.endswith(".py"))


def parse_wheel(path: Path) -> Wheel | None:
    """Return a wheel by its file name; None where it is none."""
    parts = path.name.removesuffix(".whl").split("-")
    if path.suffix != ".whl" or len(parts) not in (5, 6):
        return None
    tags = [tuple(tag.split(".")) for tag in parts[-3:]]
    return Wheel(path, normal_name(parts[0]), parts[1], tags[0], tags[1], tags[2])


def in_folder(folder: Path) -> list[Wheel]:
    return [wheel for wheel in map(parse_wheel, sorted(folder.glob("*.whl"))) if wheel is not None]


def misfit(wheel: Wheel, target: Target) -> str | None:
    """Return why a wheel cannot be installed there; None when it can."""
    if not any(_python_fits(python, abi, target.python) for python in wheel.pythons for abi in wheel.abis):
        return f"it is for {'.'.join(wheel.pythons)}-{'.'.join(wheel.abis)}, the interpreter is Python {_dotted(target.python)}"
    reasons = [_platform_misfit(platform, target) for platform in wheel.platforms]
    return None if None in reasons else next(reason for reason in reasons if reason)


def _python_fits(python: str, abi: str, have: tuple[int, int]) -> bool:
    match = re.fullmatch(r"(py|cp)(\d)(\d*)", python)
    if match is None or int(match[2]) != have[0]:
        return False
    minor = int(match[3]) if match[3] else None
    if match[1] == "py":
        return abi == "none" and (minor is None or minor <= have[1])
    if abi == "abi3":
        return minor is not None and minor <= have[1]
    return minor == have[1] and abi in (f"cp{have[0]}{have[1]}", "none")


def _platform_misfit(platform: str, target: Target) -> str | None:
    if platform in ("any", f"linux_{target.machine}"):
        return None
    match = _MANYLINUX.fullmatch(platform)
    legacy, dummy, machine = platform.partition("_")
    if match:
        floor, machine = (int(match[1]), int(match[2])), match[3]
    elif legacy in _LEGACY:
        floor = _LEGACY[legacy]
    else:
        return f"it is for {platform}, the host is Linux on {target.machine}"
    if machine != target.machine:
        return f"it is for {machine}, the host is {target.machine}"
    if target.glibc is None:
        return f"it needs glibc {_dotted(floor)}, and the C library of the host is another one"
    return None if floor <= target.glibc else f"it needs glibc {_dotted(floor)}, the host has {_dotted(target.glibc)}"


def best(wheels: Iterable[Wheel], target: Target) -> Wheel | None:
    return next((wheel for wheel in wheels if misfit(wheel, target) is None), None)


def metadata_fields(text: str) -> dict[str, list[str]]:
    """Return {field: its values} of a METADATA file."""
    fields: dict[str, list[str]] = {}
    for key, value in message_from_string(text).items():
        fields.setdefault(key.lower(), []).append(str(value))
    return fields


def _member(path: Path, ending: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(ending) and name.count("/") == 1)
            return archive.read(name).decode("utf-8", "replace")
    except (OSError, zipfile.BadZipFile, StopIteration, RuntimeError) as exc:
        raise _unreadable(path, exc) from exc


def _unreadable(path: Path, exc: Exception) -> InferopsError:
    why = "it is not a whole zip archive" if isinstance(exc, zipfile.BadZipFile) else str(exc) or "it has no METADATA"
    return InferopsError("a wheel cannot be read", where=str(path), why=why, do="copy that file again")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
