"""Tool calls as SGLang 0.5.23 sends them, asked for in plain words: "Call the function NAME … : KEY is VALUE; KEY is VALUE."

Shapes: read in the wheel (srt/entrypoints/openai/serving_chat.py, protocol.py), which follow the OpenAI API; not recorded,
since a model of random weights calls nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_CALL = re.compile(r"call the function (\w+)[^:]*: (.*)\.\s*$", re.I | re.S)
_VALUE = re.compile(r"(\w+) is ((?:\"[^\"]*\"|\[[^\]]*\]|[^;])+)")
MARKUP = "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{arguments}"


@dataclass(frozen=True)
class Call:
    """One call on its way: what the parser makes of it, and the text that it comes from."""

    name: str
    arguments: str
    parsed: bool = True

    @property
    def text(self) -> str:
        return self.arguments if self.parsed else MARKUP.format(name=self.name, arguments=self.arguments)

    def piece(self, arguments: str, *, first: bool, kimi: bool) -> dict[str, Any]:
        """One entry of delta.tool_calls: id and name come with the first piece, null with the others."""
        name = self.name if first else None
        call_id = (f"functions.{self.name}:0" if kimi else "call_000000000000000000000000") if first else None
        return {"id": call_id, "index": 0, "type": "function", "function": {"name": name, "arguments": arguments}}


def wanted_call(body: dict[str, Any], question: str, *, parser: str | None, fault: str) -> Call | None:
    """The call that a request asks for, None when it gives no such tool or wants none."""
    found = _CALL.search(question)
    names = [tool["function"]["name"] for tool in body.get("tools") or [] if isinstance(tool, dict)]
    if found is None or body.get("tool_choice") == "none" or found[1] not in names:
        return None
    values = {key: json.loads(value) for key, value in _VALUE.findall(found[2])}
    arguments, name = json.dumps(values, ensure_ascii=False), found[1]
    if fault == "broken_json":
        arguments = arguments.rstrip("}")
    if fault == "wrong_name":
        name = f"functions.{name}"
    return Call(name, arguments, parsed=parser is not None and fault != "as_text")
