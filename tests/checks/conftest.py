"""What the checks of the whole tree share: a runner that shows the end of the output, and the collection as it is released."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
TAIL_LINES = 120

Run = Callable[..., str]


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a function that runs a program of this environment and fails the test with the end of its output."""

    def call(*words: str | Path, cwd: Path = REPOSITORY, env: Mapping[str, str] | None = None) -> str:
        argv = [str(word) for word in words]
        paths = os.pathsep.join((str(BIN), os.environ["PATH"]))
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**os.environ, "PATH": paths, **(env or {})},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-TAIL_LINES:])
            pytest.fail(f"{' '.join(argv)} ended with status {done.returncode}\n{tail}", pytrace=False)
        return done.stdout

    return call


@pytest.fixture(scope="session")
def released(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the collection, install the tarball, and return its folder under .../ansible_collections/inferops/sglang."""
    folder = tmp_path_factory.mktemp("released")
    run("ansible-galaxy", "collection", "build", "--output-path", folder)
    (tarball,) = folder.glob("inferops-sglang-*.tar.gz")
    run("ansible-galaxy", "collection", "install", "--offline", "--force", "-p", folder, tarball)
    return folder / "ansible_collections" / "inferops" / "sglang"


@pytest.fixture(scope="session")
def sanity_home() -> Path:
    """Return a home folder for ansible-test that keeps its environments between runs."""
    root = Path(os.environ.get("INFEROPS_CACHE") or Path.home() / ".cache" / "inferops")
    home = root / "sanity-home"
    stand_in = Path(__file__).parent / "bootstrap_pip.py"
    for name in ("get_pip_24_2.py", "get_pip_25_2.py"):
        target = home / ".ansible" / "test" / "cache" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(stand_in, target)
    return home
