# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs of others that the tests run: pinned in a lock, installed once into an environment of their own."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import venv
from pathlib import Path


def program(lock: Path, name: str) -> Path:
    """Return the path of a program; raises CalledProcessError when it can be neither found nor installed."""
    cache = Path(os.environ.get("INFEROPS_CACHE", "~/.cache/inferops")).expanduser()
    folder = cache / f"programs-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            venv.create(folder, clear=True, with_pip=True)
            words = ["install", "--quiet", "--require-hashes", "--only-binary", ":all:", "--requirement", lock]
            subprocess.run([folder / "bin" / "pip", *words], check=True, timeout=600)
            (folder / "whole").touch()
    return folder / "bin" / name
