# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a release asks of a host, before anything is downloaded: everything that is in the way is said at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InferopsError
from .host import Interpreter, Place
from .lock import Lock
from .requirements import satisfies, version_key
from .wheels import Wheel, best, misfit

MIB = 1024 * 1024
# What published wheels of SGLang ask for, for when none is at hand: first release, Requires-Python, glibc.
RELEASES = (
    ("0.5.23", ">=3.11", (2, 34)),
    ("0.5.12", ">=3.10", (2, 34)),
    ("0.5.11", ">=3.10", (2, 34)),
    ("0.5.0", ">=3.10", None),
    ("0.4.0", ">=3.8", None),
)
# Least driver by the CUDA major of the run-time libraries (minor version compatibility, NVIDIA CUDA release notes).
DRIVERS = {"13": "580", "12": "525"}
_CUDA_PACKAGES = ("nvidia-cuda-runtime", "cuda-toolkit", "cuda-bindings", "cuda-python")
# Room for what comes from an index, whose sizes a lock does not tell: an estimate, not a measurement.
INDEX_MIB, INDEX_SMALL_MIB = 24 * 1024, 2 * 1024
BRING = "or bring one along: sglang_engine_interpreter_archive"
_SHOWN = 5


@dataclass
class Floors:
    """``problems`` is (why, what to do), ``notes`` what could not be judged, ``need_bytes`` the room that it takes."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    need_bytes: int = 0

    def refuse(self, why: str, do: str) -> None:
        self.problems.append((why, do))


def refusal(version: str, where: str, problems: Sequence[tuple[str, str]]) -> InferopsError:
    """Return one refusal that names everything that is in the way."""
    many = f"{len(problems)} things are in the way" if len(problems) > 1 else "one thing is in the way"
    steps = list(dict.fromkeys(do for dummy, do in problems))
    return InferopsError(
        f"SGLang {version} cannot be installed here: {many}; nothing was downloaded or changed",
        where=where,
        why="\n         ".join(why for why, dummy in problems),
        do="\n         ".join(steps),
    )


def check_python(floors: Floors, lock: Lock, version: str, python: Interpreter, wheel: Wheel | None) -> None:
    """The interpreter against the release's Requires-Python and what the lock was resolved for."""
    known = _known(version)
    needs, origin = (known[1], f"SGLang {version}") if known else ("", "")
    if wheel is not None:
        needs, origin = (wheel.metadata.get("requires-python") or [""])[0], f"METADATA of {wheel.path.name}"
    do = f"install that Python beside the host's own and set sglang_engine_python to it, {BRING}"
    if satisfies(python.dotted, needs) is False:
        floors.refuse(f"{python.path} is Python {python.dotted}, {needs} is needed [{origin}]", do)
    if lock.python and ".".join(map(str, python.version[:2])) != lock.python:
        floors.refuse(
            f"the lock was resolved for Python {lock.python}, {python.path} is {python.dotted} [head of the lock]",
            f"set sglang_engine_python to a Python {lock.python}, {BRING}, or make a lock for this one (sglang_engine_lock)",
        )


def check_platform(floors: Floors, lock: Lock, version: str, python: Interpreter, *, wheels_known: bool) -> None:
    """Architecture and C library, by the lock's head and, without wheels to read, by what is known of the release."""
    target = python.target
    if lock.machine and lock.machine != target.machine:
        floors.refuse(
            f"the lock is for {lock.machine}, the host is {target.machine} [head of the lock]",
            "make a lock for this architecture and set sglang_engine_lock",
        )
    known = _known(version)
    wanted = [(lock.glibc, "head of the lock")]
    if not wheels_known and known:
        wanted.append((known[2], f"wheel of SGLang {version}"))
    for floor, origin in wanted:
        if floor is None:
            continue
        if target.glibc is None or target.glibc < floor:
            have = python.libc or "another C library"
            floors.refuse(
                f"glibc {floor[0]}.{floor[1]} is needed, the host has {have} [{origin}]",
                "use a newer release of the distribution, or an older release of SGLang",
            )
            break


def check_wheels(floors: Floors, lock: Lock, python: Interpreter, wheels: Sequence[Wheel], house: Path) -> list[Wheel]:
    """Every pin against the wheelhouse; returns the wheels that would be installed."""
    by_name: dict[str, list[Wheel]] = {}
    for wheel in wheels:
        by_name.setdefault(wheel.name, []).append(wheel)
    chosen: list[Wheel] = []
    absent: list[str] = []
    unfit: list[str] = []
    for pin in lock.pins:
        if not pin.counts(python.marker):
            continue
        # A pin of 2.13.0 is met by the build 2.13.0+cpu, as pip sees it.
        there = [wheel for wheel in by_name.get(pin.name, []) if satisfies(wheel.version, f"=={pin.version}")]
        fits = best(there, python.target)
        if fits is not None:
            chosen.append(fits)
        elif there:
            unfit.append(f"{there[0].path.name}: {misfit(there[0], python.target)}")
        elif not any(house.glob(f"{pin.name.replace('-', '?')}-{pin.version}.tar.gz")):
            absent.append(f"{pin.name} {pin.version}")
    if absent:
        floors.refuse(
            f"there is no wheel of {_some(absent)} in the wheelhouse {house}",
            f"on a machine with a network: pip download --no-deps --require-hashes -r LOCK -d DIR, and copy DIR to {house}",
        )
    if unfit:
        floors.refuse(
            _some(unfit, "; "), "fetch wheels for this host, or set sglang_engine_python to the interpreter they are for"
        )
    return chosen


def check_place(floors: Floors, place: Place, need_bytes: int, origin: str) -> None:
    """Writable, executable and large enough, and each of these is asked although another failed."""
    do = f"make {place.existing} writable, or set sglang_engine_root"
    if place.read_only:
        floors.refuse(f"the file system of {place.existing} is mounted read-only", do)
    elif not place.writable:
        floors.refuse(f"{place.existing} cannot be written", do)
    if place.noexec:
        floors.refuse(
            f"the file system of {place.existing} is mounted noexec, and libraries are loaded from it",
            f"mount {place.existing} with exec, or set sglang_engine_root",
        )
    floors.need_bytes = need_bytes
    if place.free_bytes < need_bytes:
        floors.refuse(
            f"{place.existing} has {place.free_bytes // MIB} MiB free, {-(-need_bytes // MIB)} MiB are needed [{origin}]",
            f"make room on {place.existing} (sglang_engine_keep says how many old environments stay), or set sglang_engine_root",
        )


def needed_bytes(lock: Lock, chosen: Sequence[Wheel], *, from_index: bool, compiled: bool, space_mib: int) -> tuple[int, str]:
    """Return how much room an installation takes, and where the figure is from."""
    if space_mib:
        return space_mib * MIB, "sglang_engine_space_mib"
    if from_index:
        large = lock.version("torch") is not None
        return (INDEX_MIB if large else INDEX_SMALL_MIB) * MIB, "an estimate; sglang_engine_space_mib replaces it"
    sizes = [wheel.sizes() for wheel in chosen]
    # Byte code is about as long as its source.
    total = sum(unpacked + (source if compiled else 0) for unpacked, source in sizes)
    return total * 21 // 20 + 32 * MIB, "what the wheels unpack to"


def check_driver(floors: Floors, lock: Lock, driver: str | None) -> None:
    """The driver against the CUDA major of the run-time libraries; a driver that is not there is said, not refused."""
    major = _cuda_major(lock)
    if major is None or major not in DRIVERS:
        return
    least = DRIVERS[major]
    if driver is None:
        floors.notes.append(
            f"no NVIDIA driver is loaded, so it could not be held against CUDA {major}, which needs {least} or newer"
        )
        return
    have, need = version_key(driver), version_key(least)
    if have is not None and need is not None and have < need:
        floors.refuse(
            f"driver {driver} is loaded, CUDA {major} needs {least} or newer [lock]",
            "update the driver (role nvidia_stack), or install a release of SGLang for the CUDA of this driver",
        )


def _cuda_major(lock: Lock) -> str | None:
    for major in DRIVERS:
        if lock.version(f"nvidia-cuda-runtime-cu{major}") is not None:
            return major
    for name in _CUDA_PACKAGES:
        version = lock.version(name)
        if version is not None:
            return version.split(".")[0]
    return None


def _known(version: str) -> tuple[str, str, tuple[int, int] | None] | None:
    key = version_key(version)
    for release in RELEASES:
        first = version_key(release[0])
        if key is not None and first is not None and key >= first:
            return release
    return None


def _some(items: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return between.join(items[:_SHOWN]) + more
