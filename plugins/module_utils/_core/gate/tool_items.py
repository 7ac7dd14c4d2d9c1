# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests for a tool call whose right outcome is known, and why a call that came is not it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .tool_stream import StreamedCall

CITIES = ("Oslo", "Lima", "Quito", "São Paulo", "Zürich", "Hanoi", "Accra", "Reykjavík")
COLOURS = ("red", "green", "blue")
TAGS = ("urgent", "night", "cold", "fragile", "return")


def _tool(name: str, description: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = (
    _tool(
        "get_weather",
        "Weather of a city for some days",
        {"city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"}},
    ),
    _tool(
        "order_parts",
        "Order parts of a colour",
        {"colour": {"type": "string", "enum": list(COLOURS)}, "count": {"type": "integer"}, "price": {"type": "number"}},
    ),
    _tool(
        "send_parcel",
        "Send a parcel to a city",
        {"city": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}, "insured": {"type": "boolean"}},
    ),
)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


@dataclass(frozen=True)
class CallItem:
    """One request and the call that it must lead to."""

    prompt: str
    name: str
    arguments: Mapping[str, Any]

    def problem(self, calls: Sequence[StreamedCall], finish_reason: str | None) -> str | None:
        """Return why the calls are not the one asked for; None when they are."""
        if not calls:
            return "no call arrived, only text"
        if len(calls) > 1:
            return f"{len(calls)} calls arrived, one was asked for"
        call = calls[0]
        if call.name != self.name:
            return f"the function is {call.name!r}, not {self.name!r}"
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return f"the arguments of {self.name} are no JSON"
        if (wrong := against_schema(arguments, _schema(self.name))) is not None:
            return f"the arguments of {self.name} break its schema: {wrong}"
        if arguments != dict(self.arguments):
            return f"the arguments of {self.name} are not those asked for"
        return None if finish_reason == "tool_calls" else f"finish_reason is {finish_reason!r}, not 'tool_calls'"


def call_items(count: int, seed: int) -> tuple[CallItem, ...]:
    """Return ``count`` requests, the same ones for the same seed, each tool in turn."""
    source = random.Random(f"tools/{seed}")
    makers = (_weather, _parts, _parcel)
    return tuple(_item(*makers[index % len(makers)](source)) for index in range(count))


def against_schema(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return what of an object breaks its schema, as far as our own schemas go: keys, types, enumerations, items."""
    if not isinstance(value, dict):
        return "they are no object"
    properties = schema["properties"]
    for key in schema["required"]:
        if key not in value:
            return f"{key} is missing"
    for key, one in value.items():
        if key not in properties:
            return f"{key} is no parameter"
        rule = properties[key]
        if not _is(one, rule["type"]) or not all(_is(item, rule["items"]["type"]) for item in (one if "items" in rule else ())):
            return f"{key} is no {rule['type']}"
        if "enum" in rule and one not in rule["enum"]:
            return f"{key} is none of {', '.join(rule['enum'])}"
    return None


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _schema(name: str) -> Mapping[str, Any]:
    return next(tool["function"]["parameters"] for tool in TOOLS if tool["function"]["name"] == name)


def _item(name: str, arguments: dict[str, Any]) -> CallItem:
    listed = "; ".join(f"{key} is {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return CallItem(f"Call the function {name} once, with these values: {listed}.", name, arguments)


def _weather(source: random.Random) -> tuple[str, dict[str, Any]]:
    return "get_weather", {"city": source.choice(CITIES), "days": source.randint(1, 9), "metric": source.random() < 0.5}


def _parts(source: random.Random) -> tuple[str, dict[str, Any]]:
    price = source.randint(100, 999) / 100
    return "order_parts", {"colour": source.choice(COLOURS), "count": source.randint(2, 90), "price": price}


def _parcel(source: random.Random) -> tuple[str, dict[str, Any]]:
    return "send_parcel", {"city": source.choice(CITIES), "tags": source.sample(TAGS, 2), "insured": source.random() < 0.5}
