# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A model folder: its config, and whether every weight file its index lists is there and whole.

Only the header of a weight file is read: safetensors begins with the header's length (8 bytes, little endian) and a JSON
header with each tensor's data_offsets, so that a download cut short shows without reading 600 GB.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .model import ModelShape

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
NAMED_FILES = 5
"""So many file names an error lists before it counts the rest."""


@dataclass(frozen=True)
class Checkpoint:
    """What a model folder holds. ``shards`` is empty and ``index`` None where it has no weights."""

    path: str
    config: dict[str, Any]
    architectures: tuple[str, ...]
    index: str | None
    shards: tuple[str, ...]
    weights_bytes: int
    """Size of the weight files on disk."""


def read_checkpoint(folder: Path, *, weights_required: bool = True) -> Checkpoint:
    """Read a model folder, or raise InferopsError naming the file or key that is missing or cut short.

    Without ``weights_required`` a folder of config and tokenizer alone is fine; weights that are there must be whole.
    """
    if not folder.is_dir():
        raise InferopsError(
            f"there is no model folder {folder}",
            where=str(folder),
            why="it is a file" if folder.exists() else "it does not exist, or a parent cannot be read",
            do="give the folder that holds config.json and the weights",
        )
    config = _read_json(folder / "config.json", "config.json says which model this is")
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures or not all(isinstance(name, str) for name in architectures):
        raise InferopsError(
            f"{folder / 'config.json'} has no architectures",
            where="config.json: architectures",
            why="SGLang chooses the model's code by it and would stop after start",
            do='add the list from the model\'s publisher, such as "architectures": ["LlamaForCausalLM"]',
        )
    index, shards = _listed(folder, weights_required=weights_required)
    return Checkpoint(
        path=str(folder),
        config=config,
        architectures=tuple(architectures),
        index=index,
        shards=shards,
        weights_bytes=_verified_bytes(folder, shards, index or "the folder"),
    )


def model_facts(path: str, *, weights_required: bool = True) -> dict[str, Any]:
    """Return what a model folder holds as plain values; raises as read_checkpoint does."""
    checkpoint = read_checkpoint(Path(path), weights_required=weights_required)
    shape = ModelShape.from_config(checkpoint.config)
    return {
        "path": checkpoint.path,
        "config": checkpoint.config,
        "architectures": list(checkpoint.architectures),
        "num_layers": shape.num_layers,
        "context_tokens": shape.context_tokens,
        "quantization": shape.quantization,
        "counted_weights_bytes": None if shape.weights_bytes is None else round(shape.weights_bytes),
        "weights_bytes": checkpoint.weights_bytes,
        "index": checkpoint.index,
        "shards": len(checkpoint.shards),
    }


def _read_json(path: Path, why: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise InferopsError(
            f"cannot read {path}: {reason}", where=str(path), why=why, do="put the whole model folder there"
        ) from exc
    except ValueError as exc:
        raise InferopsError(
            f"{path} is not JSON", where=str(path), why=str(exc), do="copy the file again from the model"
        ) from exc
    if not isinstance(data, dict):
        raise InferopsError(f"{path} is not a JSON object", where=str(path), why=why, do="copy the file again from the model")
    return data


def _listed(folder: Path, *, weights_required: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return the index in force and the weight files it lists."""
    if (folder / INDEX).is_file():
        weights = _read_json(folder / INDEX, "it lists the weight files").get("weight_map")
        if not isinstance(weights, dict) or not weights or not all(isinstance(name, str) for name in weights.values()):
            raise InferopsError(
                f"{folder / INDEX} has no weight_map",
                where=f"{INDEX}: weight_map",
                why="without it nobody can tell whether the weights are complete",
                do="copy the index again from the model",
            )
        return INDEX, tuple(sorted(set(weights.values())))
    if (folder / SINGLE).is_file():
        return None, (SINGLE,)
    found = tuple(sorted(path.name for path in folder.glob("*.safetensors")))
    if found or weights_required:
        raise InferopsError(
            f"{folder} has {len(found)} weight files and no {INDEX}" if found else f"{folder} has no weights",
            where=str(folder / INDEX),
            why="without the index nobody can tell whether the weights are complete"
            if found
            else "only .safetensors weights are read",
            do="copy the index from the model" if found else "put the weights there, or allow a folder without them",
        )
    return None, ()


def _verified_bytes(folder: Path, shards: tuple[str, ...], listed_in: str) -> int:
    missing, broken, total = [], {}, 0
    for name in shards:
        path = folder / name
        if not path.is_file():
            missing.append(name)
            continue
        size = path.stat().st_size
        total += size
        problem = "is empty" if size == 0 else _problem(path, size)
        if problem:
            broken[name] = problem
    if missing:
        raise InferopsError(
            f"{len(missing)} of {len(shards)} weight files are missing: {_some(missing)}",
            where=str(folder),
            why=f"{listed_in} lists them",
            do="finish the download, then look again",
        )
    if broken:
        first = next(iter(broken))
        raise InferopsError(
            f"{len(broken)} of {len(shards)} weight files are not whole: {_some(list(broken))}",
            where=str(folder / first),
            why=f"{first} {broken[first]}",
            do="fetch these files again and compare their checksums",
        )
    return total


def _problem(path: Path, size: int) -> str | None:
    """Return what is wrong with a weight file, None when its header and length agree."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            if not 2 <= length <= MAX_HEADER_BYTES or LENGTH_BYTES + length > size:
                return f"has no whole safetensors header ({size} bytes)"
            header = json.loads(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        expected = LENGTH_BYTES + length + max(ends, default=0)
    except OSError as exc:
        return f"cannot be read: {exc.strerror or exc}"
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "has a header that is not safetensors"
    return None if size == expected else f"has {size} bytes, its header says {expected}"


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_FILES
    return ", ".join(names[:NAMED_FILES]) + (f" and {rest} more" if rest > 0 else "")
