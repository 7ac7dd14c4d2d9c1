# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Published SGLang wheels the tests read: pinned by version and hash, fetched once, never committed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

# version: (file name, sha256)
PINS = {
    "0.5.10": ("sglang-0.5.10-py3-none-any.whl", "ac8855a5d57dac8831fee526bca5212f1ae451f378e2ab08b3baecbc4deb4076"),
    "0.5.12": (
        "sglang-0.5.12-cp311-cp311-manylinux_2_34_x86_64.whl",
        "4ed786a38655851fd055ef57380c34d29b87753b53f63457309f51e5bf48c2e6",
    ),
    "0.5.14": (
        "sglang-0.5.14-cp311-cp311-manylinux_2_34_x86_64.whl",
        "4fe16056b45c8aca00f5f90ceb174dc3a62a3f5dccf159c791370795cd00fc99",
    ),
    "0.5.19": (
        "sglang-0.5.19-cp311-cp311-manylinux_2_34_x86_64.whl",
        "425e87377e725d03db8262382008f3fd9561a6cf5d82f485f8b9929f02ffe12b",
    ),
    "0.5.23": (
        "sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl",
        "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937",
    ),
}


class NoWheel(Exception):
    """A pinned wheel is neither in the cache nor to be had."""


def cache_folder() -> Path:
    return Path(os.environ.get("INFEROPS_CACHE", "~/.cache/inferops")).expanduser() / "wheels"


def fetch(version: str) -> Path:
    """Return the wheel of a pinned version out of the cache, downloading it once. Raises NoWheel with the reason."""
    name, sha256 = PINS[version]
    path = cache_folder() / name
    if not path.exists():
        _download(version, path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        path.unlink()
        raise NoWheel(f"{name} is not the file pinned by sha256 {sha256}; removed from the cache")
    return path


def _download(version: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", "3.11", "--platform", "manylinux_2_34_x86_64", "--platform", "any"]
    command += ["--dest", str(path.parent), f"sglang=={version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NoWheel(f"sglang {version} could not be downloaded: {exc}") from exc
    if done.returncode or not path.exists():
        last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise NoWheel(f"sglang {version} could not be downloaded: {last}")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PINS:
        print(fetch(wanted))
