"""A model folder of the right shape and size that takes no space: the real config.json's fields, sparse weight files."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from .places import REPOSITORY, cache, digest, locked
from .shell import run

CONFIG = REPOSITORY / "tests" / "fixtures" / "models" / "kimi_k2_6" / "config.json"
TINY = REPOSITORY / "tests" / "fakes" / "record" / "model.py"
TOTAL_BYTES = 595_000_000_000
SHARDS = 64


def build() -> Path:
    """Return the folder with the simulated Kimi K2.6; it is made again when its inputs changed."""
    folder = cache("models", "kimi-k2.6")
    stamp = folder / ".made-from"
    key = digest([CONFIG, Path(__file__)])
    with locked("models"):
        if stamp.exists() and stamp.read_text() == key:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(CONFIG, folder / "config.json")
        names = [f"model-{number:05d}-of-{SHARDS:05d}.safetensors" for number in range(1, SHARDS + 1)]
        for name in names:
            write_shard(folder / name, f"simulated.{name}", TOTAL_BYTES // SHARDS)
        index = {"metadata": {"total_size": TOTAL_BYTES}, "weight_map": {f"simulated.{name}": name for name in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
        (folder / "README.md").write_text("Simulated: right sizes, no weights. Made by the test lab.\n")
        stamp.write_text(key)
    return folder


def build_tiny(wheels: Path) -> Path:
    """Return the folder with a tiny model of Kimi's shape and a real tokenizer; its weights are made up by the server."""
    folder = cache("models", "tiny")
    stamp = folder / ".made-from"
    key = digest([TINY, Path(__file__)])
    with locked("models"), tempfile.TemporaryDirectory() as library:
        if stamp.exists() and stamp.read_text() == key:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        (wheel,) = wheels.glob("tokenizers-*.whl")
        zipfile.ZipFile(wheel).extractall(library)
        code = "import pathlib, sys; sys.path[:0] = sys.argv[1:3]; import model; model.write_model(pathlib.Path(sys.argv[3]))"
        run([sys.executable, "-c", code, library, TINY.parent, folder])
        stamp.write_text(key)
    return folder


def write_shard(path: Path, tensor: str, size_bytes: int) -> None:
    """Write a valid safetensors file of one tensor whose bytes are a hole in the file."""
    header = json.dumps({tensor: {"dtype": "U8", "shape": [size_bytes], "data_offsets": [0, size_bytes]}}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size_bytes)
