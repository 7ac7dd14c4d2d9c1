# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A model folder: its config, and whether every weight file its index lists is there, whole, and the one the index means."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .model import ModelShape
from .model_code import check_accepted, code_files
from .safetensors import CODE, NotWhole, tensor_names

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
LAYER = re.compile(r"(?!.*(?:vis|vit|image|audio)).*?(?:^|\.)layers\.(\d+)\.")
"""The number of a decoder layer in a tensor's name; towers for pictures and sound have layers of their own."""
NAMED_FILES = 5
"""So many file names an error lists before it counts the rest."""


@dataclass(frozen=True)
class Checkpoint:
    """What a model folder holds. ``shards`` is empty and ``index`` None where it has no weights."""

    path: str
    config: dict[str, Any]
    shape: ModelShape
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
    index, listed = _listed(folder, weights_required=weights_required)
    weights_bytes, held = _verified(folder, listed, index or "the folder")
    shape = ModelShape.from_config(config)
    _check_layers(shape.num_layers, held)
    return Checkpoint(
        path=str(folder),
        config=config,
        shape=shape,
        architectures=tuple(architectures),
        index=index,
        shards=tuple(listed),
        weights_bytes=weights_bytes,
    )


def model_facts(path: str, *, weights_required: bool = True, accepted_code: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a model folder holds as plain values; raises as read_checkpoint does, and for code that was not accepted."""
    checkpoint = read_checkpoint(Path(path), weights_required=weights_required)
    code = code_files(Path(path))
    check_accepted(Path(path), code, accepted_code or {})
    shape = checkpoint.shape
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
        "code_files": code,
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


def _listed(folder: Path, *, weights_required: bool) -> tuple[str | None, dict[str, frozenset[str]]]:
    """Return the index in force and, for each weight file it lists, the tensors that it expects there."""
    if (folder / INDEX).is_file():
        weights = _read_json(folder / INDEX, "it lists the weight files").get("weight_map")
        if not isinstance(weights, dict) or not weights or not all(isinstance(name, str) for name in weights.values()):
            raise InferopsError(
                f"{folder / INDEX} has no weight_map",
                where=f"{INDEX}: weight_map",
                why="without it nobody can tell whether the weights are complete",
                do="copy the index again from the model",
            )
        return INDEX, _by_file(weights)
    if (folder / SINGLE).is_file():
        return None, {SINGLE: frozenset()}
    found = sorted(path.name for path in folder.glob("*.safetensors"))
    if found:
        raise InferopsError(
            f"{folder} has {len(found)} weight files and no {INDEX}",
            where=str(folder / INDEX),
            why="without the index nobody can tell whether the weights are complete",
            do="copy the index from the model",
        )
    if weights_required:
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
        raise InferopsError(
            f"{folder} has no weights" + (f" but pickles: {_some(pickles)}" if pickles else ""),
            where=str(folder / INDEX),
            why="only .safetensors weights are read" + (f"; {CODE}" if pickles else ""),
            do="put the weights there, or allow a folder without them",
        )
    return None, {}


def _by_file(weights: Mapping[str, str]) -> dict[str, frozenset[str]]:
    files: dict[str, set[str]] = {}
    for tensor, name in weights.items():
        if Path(name).name != name:
            raise InferopsError(
                f"{INDEX} lists a file outside the folder: {name}",
                where=f"{INDEX}: weight_map: {tensor}",
                why="weight files lie beside their index",
                do="copy the index again from the model",
            )
        files.setdefault(name, set()).add(tensor)
    return {name: frozenset(tensors) for name, tensors in sorted(files.items())}


def _verified(folder: Path, listed: Mapping[str, frozenset[str]], listed_in: str) -> tuple[int, set[str]]:
    """Return the size of all weight files and the names of all tensors in them; each file must be the one the index means."""
    missing, broken, total = [], {}, 0
    held: set[str] = set()
    for name, wanted in listed.items():
        path = folder / name
        if not path.is_file():
            missing.append(name)
            continue
        size = path.stat().st_size
        total += size
        try:
            tensors = tensor_names(path, size)
        except NotWhole as exc:
            broken[name] = str(exc)
            continue
        held |= tensors
        if absent := sorted(wanted - tensors):
            broken[name] = f"lacks {len(absent)} of the {len(wanted)} tensors that {listed_in} expects in it, such as {absent[0]}"
    if missing:
        raise InferopsError(
            f"{len(missing)} of {len(listed)} weight files are missing: {_some(missing)}",
            where=str(folder),
            why=f"{listed_in} lists them",
            do="finish the download, then look again",
        )
    if broken:
        first = next(iter(broken))
        raise InferopsError(
            f"{len(broken)} of {len(listed)} weight files are not whole: {_some(list(broken))}",
            where=str(folder / first),
            why=f"{first} {broken[first]}",
            do="fetch these files again and compare their checksums",
        )
    return total, held


def _check_layers(num_layers: int | None, held: set[str]) -> None:
    """Refuse weights of fewer layers than the config says; further ones, as for speculative decoding, are fine."""
    layers = [int(found[1]) for name in held if (found := LAYER.match(name))]
    if num_layers is not None and layers and max(layers) + 1 < num_layers:
        raise InferopsError(
            f"the weights hold {max(layers) + 1} layers, config.json says {num_layers}",
            where="config.json: num_hidden_layers",
            why="config and weights are of different models, or of different revisions of one",
            do="fetch config.json and the weights from one revision",
        )


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_FILES
    return ", ".join(names[:NAMED_FILES]) + (f" and {rest} more" if rest > 0 else "")
