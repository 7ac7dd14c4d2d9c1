# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where compiled kernels are kept: one folder per engine, cards and driver, chosen by the wrapper as it starts the engine.

A driver may change between two starts of the same unit, so that only the start knows which kernels fit.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..engine.host import driver_version
from ..gate.nvml import NoNvmlError, Nvml

MARK = "@CARDS@"
MADE = ".made"
# What Triton, Inductor, FlashInfer, DeepGEMM and SGLang's own kernels end as.
COMPILED = (".cubin", ".hsaco", ".ptx", ".so")
# The driver's own cache names its files by digests.
DRIVER_CACHE = "cuda"


@dataclass(frozen=True)
class Kernels:
    """The folder in which a server keeps what it compiles. ``made`` is drawn anew when the folder is made anew."""

    folder: Path
    cards: str
    made: str

    def compiled_since(self, t: float) -> list[str]:
        """Return the kernels written after t [unix seconds], the oldest first; raise OSError where that cannot be seen."""
        found = sorted((entry.stat().st_mtime, entry.path) for entry in _files(self.folder) if entry.stat().st_mtime > t)
        return [str(Path(path).relative_to(self.folder)) for dummy, path in found]

    def mark_ready(self, instance: str) -> None:
        """Write down for this instance that a server is ready which uses these kernels; the time of the file is the time."""
        stamp = _stamp(self.folder.parent, instance)
        fresh = stamp.with_name(f"{stamp.name}.{os.getpid()}")
        fresh.write_text(json.dumps({"cards": self.cards, "made": self.made}) + "\n", encoding="utf-8")
        fresh.replace(stamp)


def root_of(env: Mapping[str, str]) -> Path | None:
    """Return the folder of all kernels of an engine, None where its environment leaves the cards open nowhere.

    >>> root_of({"HOME": "/var/cache/inferops/0.5.23-a/@CARDS@", "X": "y"})
    PosixPath('/var/cache/inferops/0.5.23-a')
    """
    found = next((value.partition(f"/{MARK}")[0] for value in env.values() if f"/{MARK}" in value), "")
    return Path(found) if found else None


def prepared(environ: Mapping[str, str], cards: Callable[[], str]) -> tuple[dict[str, str], Kernels | None]:
    """Return the environment for the engine, its folders made, and where its kernels lie; raise OSError where that cannot be."""
    root = root_of(environ)
    if root is None:
        return dict(environ), None
    name = cards()
    env = {key: value.replace(MARK, name) for key, value in environ.items()}
    for key, value in env.items():
        if value != environ[key]:
            Path(value).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), (root / name / MADE).open("x", encoding="utf-8") as file:
        file.write(secrets.token_hex(8))
    return env, Kernels(root / name, name, (root / name / MADE).read_text(encoding="utf-8"))


def in_use(env: Mapping[str, str], instance: str, read: Callable[[Path], str | None]) -> Kernels | None:
    """Return where the server of an instance keeps its kernels, as its wrapper wrote it down; None where nothing says so."""
    root = root_of(env)
    text = read(_stamp(root, instance)) if root else None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        said = json.loads(text or "")
        if root and re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", said["cards"]):
            return Kernels(root / said["cards"], said["cards"], str(said["made"]))
    return None


def ready_at(env: Mapping[str, str], instance: str) -> float | None:
    """Return when the server of an instance was ready the last time [unix seconds]."""
    root = root_of(env)
    try:
        return _stamp(root, instance).stat().st_mtime if root else None
    except OSError:
        return None


def cards_here(open_nvml: Callable[[], Nvml] = Nvml, system: Path = Path("/")) -> str:
    """Return the name of what kernels are compiled for here: models of the cards and driver, else the processor."""
    names: set[str] = set()
    driver = driver_version(system)
    with contextlib.suppress(NoNvmlError):
        nvml = open_nvml()
        driver = nvml.driver()["driver_version"] or driver
        names = {str(nvml.identity(index)["name"] or "unknown") for index in range(len(nvml.handles))}
        nvml.close()
    if names or driver:
        return _name("+".join(sorted(names)) or "nvidia", driver or "unknown")
    return _name("cpu", _processor(system))


def _processor(system: Path) -> str:
    try:
        text = (system / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"(?m)^model name\s*: (.+)$", text)
    return found[1] if found else platform.machine()


def _name(*parts: str) -> str:
    """Return a name for a folder.

    >>> _name("NVIDIA RTX PRO 6000 Blackwell Server Edition", "580.95.05")
    'nvidia-rtx-pro-6000-blackwell-server-edition-580.95.05'
    """
    return re.sub(r"[^a-z0-9.+]+", "-", "-".join(parts).lower()).strip("-.+")


def _stamp(root: Path, instance: str) -> Path:
    return root / f".ready-{instance}"


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Walk over the compiled kernels; what goes away meanwhile is passed over, as compilers rename their results."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                elif entry.name.endswith(COMPILED) or f"/{DRIVER_CACHE}/" in entry.path:
                    entry.stat()
                    yield entry
