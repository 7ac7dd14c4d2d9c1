# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The published schemas, as another tool would use them, and a closed form that also refuses what they do not describe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[6] / "docs" / "schemas"
NAMES = ("gate-plan.schema.json", "gate-result.schema.json")


def load(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


REGISTRY = Registry().with_resources([(name, Resource.from_contents(load(name))) for name in NAMES])
PLAN = Draft202012Validator(load(NAMES[0]), registry=REGISTRY)


def closed(schema: Any) -> Any:
    """Return the schema with every described object closed: a key that it does not describe is then an error."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {key: closed(value) for key, value in schema.items()}
    if isinstance(shut.get("properties"), dict) and "$ref" not in shut and "type" in shut:
        shut.setdefault("additionalProperties", False)
    return shut


def of_result(part: str | None = None) -> Draft202012Validator:
    """Return the closed validator of result.json, or of a line that one of its definitions describes."""
    schema = closed(load("gate-result.schema.json"))
    if part is not None:
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{part}"}
    return Draft202012Validator(schema, registry=REGISTRY)


def problems(validator: Draft202012Validator, value: Any) -> list[str]:
    """Return what is wrong as one line each; the value must survive JSON first, as it does in a file."""
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(json.loads(json.dumps(value)))]


def described(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, schema) of every property at any depth."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from described(item, f"{where}/{index}")
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("if", "then", "else"):
            continue
        if key == "properties":
            for name, inner in value.items():
                yield f"{where}/{name}", inner
                yield from described(inner, f"{where}/{name}")
        else:
            yield from described(value, f"{where}/{key}")
