# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hub's real client in an environment of its own, installed once from client.lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

LOCK = Path(__file__).with_name("client.lock")


def hf() -> Path:
    """Return the path of ``hf``; raises CalledProcessError when it can be neither found nor installed."""
    cache = Path(os.environ.get("INFEROPS_CACHE", "~/.cache/inferops")).expanduser()
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    folder = cache / f"hub-client-{digest}-py{sys.version_info[0]}{sys.version_info[1]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "hub-client.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            venv.create(folder, clear=True, with_pip=True)
            words = ["install", "--quiet", "--require-hashes", "--only-binary", ":all:", "--requirement", LOCK]
            subprocess.run([folder / "bin" / "pip", *words], check=True, timeout=600)
            (folder / "whole").touch()
    return folder / "bin" / "hf"
