# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading what people hand to the gate: plans, facts, keys, results. JSON always works, YAML where PyYAML is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .folder import RESULT


def read_mapping(path: Path, kind: str) -> dict[str, Any]:
    """Return the mapping in a JSON or YAML file."""
    text = _read(path, kind)
    try:
        value = json.loads(text)
    except ValueError as exc:
        value = _yaml(text, path, kind, exc)
    if not isinstance(value, dict):
        raise InferopsError(f"the {kind} is not a mapping", where=str(path), do="write keys and values")
    return value


def read_key(path: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the API key of a file, else of INFEROPS_API_KEY, else None."""
    if path is None:
        return environment.get("INFEROPS_API_KEY") or None
    key = _read(path, "API key").strip()
    if not key or any(character.isspace() for character in key):
        raise InferopsError("the file does not hold one API key", where=str(path), do="write the key alone, on one line")
    return key


def read_result(path: Path) -> dict[str, Any]:
    """Return the result of a folder or of a result.json."""
    return read_mapping(path / RESULT if path.is_dir() else path, "gate result")


def _read(path: Path, kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise InferopsError(f"the {kind} cannot be read", where=str(path), why=str(exc), do="check path and rights") from exc


def _yaml(text: str, path: Path, kind: str, problem: ValueError) -> Any:
    try:
        import yaml
    except ImportError:
        raise InferopsError(
            f"the {kind} is not JSON", where=str(path), why=str(problem), do="write JSON, or pip install PyYAML for YAML"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise InferopsError(f"the {kind} is neither JSON nor YAML", where=str(path), why=str(exc), do="correct it") from exc
