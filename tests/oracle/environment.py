# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Build what executing SGLang's argument code needs: a CPU-only Python environment, overlays with older transformers, releases.

Everything lies in the cache, is made once, and is safe to delete. Usage: python tests/oracle/environment.py [RELEASE …]
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [
    str(HERE),
    str(REPOSITORY / "tests" / "unit"),
    str(REPOSITORY / "tests" / "lab"),
    str(REPOSITORY / "plugins" / "module_utils"),
]
import stand_ins  # noqa: E402
import wheels  # noqa: E402
from _core.errors import InferopsError  # noqa: E402
from inferops_lab import environment as lab  # noqa: E402
from inferops_lab.places import cache, digest, locked  # noqa: E402
from inferops_lab.shell import Step, run, succeeds  # noqa: E402

LOCK = HERE / "requirements.txt"
# Without a hash: what pip gets depends on where the machine takes torch from. Only a CPU build works here.
TORCH = "torch==2.13.0"
NEEDED_BYTES = 5 << 30
PIP = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
ONLINE = "make the Python package index reachable for pip, then repeat"

# transformers of the environment itself, and for releases that pin an older one. Each: (name, version, sha256).
NEWEST = "5.19.0"
OVERLAYS = {
    "4.51.1": (
        ("transformers", "4.51.1", "c7038e216afb2a3e9b00dd12d87ad5e3af4c30895f70b28e92f65459eded0161"),
        ("tokenizers", "0.21.4", "51b7eabb104f46c1c50b486520555715457ae833d5aee9ff6ae853d1130506ff"),
        ("huggingface-hub", "0.36.0", "7bcc9ad17d5b3f07b57c78e79d527102d08313caa278a641993acddcb894548d"),
    ),
    "4.57.1": (
        ("transformers", "4.57.1", "b10d05da8fa67dc41644dbbf9bc45a44cb86ae33da6f9295f5fbf5b7890bd267"),
        ("tokenizers", "0.22.1", "e2ef6063d7a84994129732b47e7915e8710f27f99f3a3260b8a38fc7ccd083f4"),
        ("huggingface-hub", "0.36.0", "7bcc9ad17d5b3f07b57c78e79d527102d08313caa278a641993acddcb894548d"),
    ),
    "5.3.0": (
        ("transformers", "5.3.0", "50ac8c89c3c7033444fb3f9f53138096b997ebb70d4b5e50a2e810bf12d3d29a"),
        ("tokenizers", "0.22.2", "369cc9fc8cc10cb24143873a0d95438bb8ee257bb80c71989e3ee290e8d72c67"),
        ("huggingface-hub", "1.5.0", "c9c0b3ab95a777fc91666111f3b3ede71c0cdced3614c553a64e98920585c4ee"),
    ),
    "5.12.1": (
        ("transformers", "5.12.1", "2a5e109d2021265df7098ffbb738295acaf5ad256f12cbc586db2ea4dcbb1a8a"),
        ("tokenizers", "0.22.2", "369cc9fc8cc10cb24143873a0d95438bb8ee257bb80c71989e3ee290e8d72c67"),
        ("huggingface-hub", "1.5.0", "c9c0b3ab95a777fc91666111f3b3ede71c0cdced3614c553a64e98920585c4ee"),
    ),
}


@dataclass(frozen=True)
class Place:
    """Where one release can be executed: the interpreter, what goes before its site-packages, the release itself."""

    python: Path
    overlay: Path | None
    source: Path

    @property
    def package(self) -> Path:
        return self.source / "sglang"


def ensure(version: str) -> Place:
    """Return where this release runs; build what is missing. Raises InferopsError with what to do."""
    source = unpack(version)
    python = _interpreter()
    wanted = stand_ins.pinned(source).get("transformers", NEWEST)
    era = era_of(wanted)
    return Place(python, _overlay(python, era) if era in OVERLAYS else None, source)


def era_of(pin: str) -> str:
    """Return the transformers to run with: the first that we have of those not older than the pin.

    >>> era_of("4.56.1"), era_of("5.6.0"), era_of("5.19.0")
    ('4.57.1', '5.12.1', '5.19.0')
    """
    return next((era for era in OVERLAYS if _numbers(era) >= _numbers(pin)), NEWEST)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int("".join(filter(str.isdigit, part.partition("rc")[0])) or 0) for part in version.split(".")[:3])


def unpack(version: str) -> Path:
    """Return the folder with a pinned release, unpacked: argument code also looks for data files next to it."""
    try:
        wheel = wheels.fetch(version)
    except wheels.NoWheel as exc:
        raise InferopsError(str(exc), where=f"sglang {version}", do=ONLINE) from exc
    folder = cache("oracle", "sglang", f"{version}-{digest([wheels.PINS[version][1], 'whole'])}")
    with locked(f"oracle-sglang-{version}"):
        if not folder.exists():
            made = folder.with_name(f".{folder.name}")
            shutil.rmtree(made, ignore_errors=True)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(made)
            made.rename(folder)
    return folder


def _interpreter() -> Path:
    folder = cache("oracle", "venv")
    key = digest([LOCK, TORCH])
    stamp = folder / ".made-from"
    with locked("oracle-venv"):
        if not (stamp.exists() and stamp.read_text() == key):
            _check_space(folder.parent)
            shutil.rmtree(folder, ignore_errors=True)
            python = lab.create(folder, _oldest())
            with Step(f"installing what SGLang's argument code imports into {folder} (about 3 GB)"):
                run([python, *PIP, "--no-deps", TORCH], do=ONLINE)
                run([python, *PIP, "--no-deps", "--require-hashes", "-r", LOCK], do=ONLINE)
            if not succeeds([python, "-c", "import torch, transformers, triton"]):
                raise InferopsError(
                    f"{TORCH} does not work in {folder}",
                    why="pip may have taken a CUDA build, which needs its libraries",
                    do="configure pip so that it finds a CPU build of torch, then repeat",
                )
            stamp.write_text(key)
    return folder / "bin" / "python"


def _oldest() -> str:
    python = lab.oldest_python()
    if python is None:
        raise InferopsError("this machine has no working Python 3.11", do="install it: the locked packages are of that version")
    return python


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise InferopsError(
            f"{free >> 20} MiB free, {NEEDED_BYTES >> 20} MiB needed to execute SGLang's argument code",
            where=str(folder),
            do="free some, or set INFEROPS_CACHE to a larger disk",
        )


def _overlay(python: Path, era: str) -> Path:
    lines = "\n".join(f"{name}=={version} --hash=sha256:{sha256}" for name, version, sha256 in OVERLAYS[era])
    folder = cache("oracle", "overlay", f"{era}-{digest([lines])}")
    with locked(f"oracle-overlay-{era}"):
        if not folder.exists():
            made = folder.with_name(f".{folder.name}")
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            lock = made / "lock.txt"
            lock.write_text(lines + "\n")
            with Step(f"installing transformers {era}"):
                run([python, *PIP, "--no-deps", "--require-hashes", "--target", made, "-r", lock], do=ONLINE)
            made.rename(folder)
    return folder


def main(versions: Iterable[str]) -> int:
    try:
        for version in versions:
            print(version, ensure(version))
    except InferopsError as exc:
        print(exc, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or wheels.PINS))
