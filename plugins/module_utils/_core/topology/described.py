# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a model takes on the cards, and which parsers a release has for it, from files alone."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .families import text_config
from .memory import plan_memory
from .model import ModelShape

PARSERS = {
    "tool_call": (("srt/function_call/function_call_parser.py",), "ToolCallParserEnum"),
    "reasoning": (("srt/parser/reasoning_parser.py", "srt/reasoning_parser.py"), "DetectorMap"),
}
"""The dict whose keys are the choices of --tool-call-parser and --reasoning-parser (0.4.6 … 0.5.23), and the files it was in."""


def parameters(config: Mapping[str, Any]) -> int | None:
    """Return the parameters of the model counted from its config; None for an architecture that is not known.

    Counted as the same model without quantization, every parameter as wide as the next.
    """
    plain = _without_quantization(config)
    shape = ModelShape.from_config(plain)
    if shape.weights_bytes is None or not shape.dtype_bytes:
        return None
    return round(shape.weights_bytes / shape.dtype_bytes)


def stages(
    config: Mapping[str, Any], *, tp_size: int, pp_size: int, partition: str, kv_cache_dtype: str
) -> list[dict[str, Any]] | None:
    """Return bytes of weights and of cache per token for one card of each stage; None where they cannot be counted.

    Raises InferopsError for stages that the layers cannot be split into.
    """
    shape = ModelShape.from_config(config)
    if None in (shape.layers, shape.embedding_bytes, shape.head_bytes):
        return None
    plan = plan_memory(shape, tp_size=tp_size, pp_size=pp_size, partition=partition or None, kv_cache_dtype=kv_cache_dtype)
    return [
        {
            "pp_rank": stage.pp_rank,
            "layers": stage.layers,
            "weights_bytes": round(stage.weights_bytes),
            "kv_bytes_per_token": None if stage.kv_bytes_per_token is None else round(stage.kv_bytes_per_token),
        }
        for stage in plan.stages
    ]


def parsers(package: Path, config: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the parsers that a release knows, and those among them that are called like the model. Imports nothing.

    ``package`` is the folder ``sglang``. A name alike is a hint: the model's card says which parser it needs.
    """
    model_type = _letters(str(text_config(config).get("model_type") or "")), _letters(str(config.get("model_type") or ""))
    found = {}
    for kind, (files, name) in PARSERS.items():
        known = _keys(package, files, name)
        alike = [parser for parser in known if any(own and own.startswith(_letters(parser)) for own in model_type)]
        found[kind] = {"known": known, "alike": sorted(alike, key=len, reverse=True)}
    return found


def _keys(package: Path, files: tuple[str, ...], name: str) -> list[str]:
    path = next((package / file for file in files if (package / file).is_file()), None)
    if path is None:
        raise InferopsError(
            f"there is no list of parsers in {package}",
            where=str(package / files[0]),
            why="the file is missing: this is no SGLang, or one of a shape that is not known here",
            do="give the folder that holds the package sglang",
        )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if isinstance(getattr(node, "value", None), ast.Dict) and any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            keys = node.value.keys  # type: ignore[attr-defined]
            return [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    raise InferopsError(
        f"{path} has no {name}", where=str(path), why="the release keeps its parsers elsewhere", do="ask sglang --help for them"
    )


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _without_quantization(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key not in ("quantization_config", "compression_config")}
    return {key: _without_quantization(value) if isinstance(value, Mapping) else value for key, value in kept.items()}
