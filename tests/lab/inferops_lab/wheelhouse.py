"""The wheelhouse the hosts install from without a network: pinned downloads, the stand-in engine, and the engine's lock."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from _core.errors import InferopsError

from .places import REPOSITORY, cache, digest, locked
from .shell import Step, run

TOOLS_LOCK = REPOSITORY / "roles" / "sglang_release" / "files" / "tools.lock"
ROUTER_LOCK = REPOSITORY / "roles" / "sglang_router" / "files" / "router.lock"
EXTRA_LOCK = REPOSITORY / "tests" / "lab" / "wheelhouse.lock"
CPU_LOCK = REPOSITORY / "tests" / "lab" / "engine-cpu.lock"
FAKE = REPOSITORY / "tests" / "fakes"
# The Python of the hosts, which need not be the one of this machine.
HOST_PYTHON = (
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
    "--abi=abi3",
    "--abi=none",
    *(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    *(f"--platform=manylinux{year}_x86_64" for year in (2014, 2010, 1)),
    "--platform=any",
)
ENGINE_LOCK = "engine.lock"


def build(python: str = sys.executable) -> Path:
    """Bring the wheelhouse up to date and return it; what is there and has the right hash is not downloaded again."""
    house = cache("wheelhouse")
    house.mkdir(exist_ok=True)
    locks = [lock for lock in (TOOLS_LOCK, ROUTER_LOCK, EXTRA_LOCK) if lock.exists()]
    with locked("wheelhouse"), ThreadPoolExecutor() as pool:
        jobs = [pool.submit(_download, python, lock, house) for lock in locks]
        jobs.append(pool.submit(_build_fake, python, house))
        wait(jobs)
        for job in jobs:
            job.result()
        _write_engine_lock(house)
    return house


def build_cpu(python: str = sys.executable) -> Path:
    """Return the wheelhouse of the real SGLang for a CPU (700 MB), with ``engine.lock``; brought up to date first."""
    house = cache("wheelhouse-cpu")
    house.mkdir(exist_ok=True)
    with locked("wheelhouse-cpu"):
        _download(python, CPU_LOCK, house)
        run([python, FAKE / "build", "cpu-wheel", house])
        stand_ins = house / "inferops_cpu_stand_ins-1.0-py3-none-any.whl"
        added = f"inferops-cpu-stand-ins==1.0 --hash=sha256:{hashlib.sha256(stand_ins.read_bytes()).hexdigest()}\n"
        (house / ENGINE_LOCK).write_text(CPU_LOCK.read_text() + added)
    return house


def holds_cpu() -> bool:
    """Tell whether the wheels of the real SGLang for a CPU are all here."""
    return _is_whole(CPU_LOCK, cache("wheelhouse-cpu"))


def _marker(lock: Path) -> Path:
    return cache("wheelhouse-state", f"{lock.stem}-{digest([without_markers(lock.read_text())])}")


def _is_whole(lock: Path, house: Path) -> bool:
    marker = _marker(lock)
    return marker.exists() and all((house / name).exists() for name in marker.read_text().split())


def _download(python: str, lock: Path, house: Path) -> None:
    """Download a lock's wheels unless the marker says that this very lock is already there, whole."""
    if _is_whole(lock, house):
        return
    _reuse(lock, house)
    asked, marker = without_markers(lock.read_text()), _marker(lock)
    asked_file = cache("wheelhouse-state", f"{lock.stem}.lock")
    asked_file.write_text(asked)
    with Step(f"downloading the wheels of {lock.name}"), tempfile.TemporaryDirectory(dir=house.parent) as folder:
        run(
            [
                python,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
                *HOST_PYTHON,
                f"--find-links={house}",
                "-d",
                folder,
                "-r",
                asked_file,
            ],
            do="make the Python package index reachable for pip, then repeat; what was downloaded is kept",
        )
        names = sorted(path.name for path in Path(folder).iterdir())
        for name in names:
            Path(folder, name).replace(house / name)
    marker.write_text("\n".join(names))


def without_markers(lock: str) -> str:
    """Return a lock whose lines all count: pip judges markers by the Python that runs it, not by that of the hosts."""
    return re.sub(r"^([\w.-]+==[^\s;]+) *;[^\\\n]*", r"\1 ", lock, flags=re.MULTILINE)


def _reuse(lock: Path, house: Path) -> None:
    """Take a wheel that the unit tests have already fetched; pip still checks its hash."""
    for project, version in re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(), flags=re.MULTILINE):
        for wheel in cache("wheels", "x").parent.glob(f"{project.replace('-', '_')}-{version}-*.whl"):
            if not (house / wheel.name).exists():
                shutil.copy(wheel, house / wheel.name)


def _build_fake(python: str, house: Path) -> None:
    """Build the stand-in engine's wheel when its sources changed; older ones are removed, so that one name means one file."""
    builder = FAKE / "build"
    if not builder.exists():
        raise InferopsError("the stand-in engine cannot be built", where=str(builder), do="run from a complete clone")
    marker = cache("wheelhouse-state", f"fake-{digest([FAKE / 'engine', builder])}")
    if marker.exists() and (house / marker.read_text()).exists():
        return
    with tempfile.TemporaryDirectory(dir=house.parent) as folder:
        run([python, builder, "wheel", folder])
        (wheel,) = Path(folder).glob("*.whl")
        for old in house.glob("inferops_fake_engine-*.whl"):
            old.unlink()
        os.replace(wheel, house / wheel.name)  # noqa: PTH105
        marker.write_text(wheel.name)


def _write_engine_lock(house: Path) -> None:
    """Write what the engine's environment holds on a test host: the published wheel and the stand-in for it."""
    lines = ["# The engine of the test hosts: SGLang as published, which the check reads, and the stand-in that answers."]
    lines += [line for line in EXTRA_LOCK.read_text().splitlines() if line and not line.startswith("#")]
    for wheel in sorted(house.glob("inferops_fake_engine-*.whl")):
        version = wheel.name.split("-")[1]
        lines.append(f"inferops-fake-engine=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}")
    text = "\n".join(lines) + "\n"
    target = house / ENGINE_LOCK
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
