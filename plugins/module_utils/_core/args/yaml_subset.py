# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part of YAML a flat file of server options uses, read with the standard library: ``key: value``, lists, JSON values.

Anything beyond raises InferopsError naming the line; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import InferopsError

_KEY = re.compile(r"""^(?P<key>[A-Za-z_][\w.-]*|"[^"]*"|'[^']*')\s*:(?:\s+(?P<value>.*))?$""")
_INT = re.compile(r"^[-+]?[0-9][0-9_]*$")
_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+][0-9]+)?)$")
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None, "": None}


def read_mapping(text: str, where: str) -> dict[str, Any]:
    """Return the mapping a file holds; an empty file gives an empty one."""
    out: dict[str, Any] = {}
    key: str | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_comment(raw).rstrip()
        if not line or line in ("---", "..."):
            continue
        item = line.strip()
        if item.startswith("- ") and key is not None and (out[key] is None or isinstance(out[key], list)):
            out[key] = [*(out[key] or []), scalar(item[2:].strip(), where, number)]
            continue
        match = _KEY.match(line)
        if match is None:
            raise _unreadable(where, number, raw)
        key = match["key"].strip("\"'")
        if key in out:
            raise InferopsError(f"{key} stands twice in {where}", where=f"{where}:{number}", do="keep one of them")
        out[key] = scalar((match["value"] or "").strip(), where, number)
    return out


def scalar(text: str, where: str, number: int) -> Any:
    """Return the value of one scalar or of a list or mapping written on one line in JSON."""
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            if text.startswith("[") and text.endswith("]") and not re.search(r"[\[\]{}\"']", text[1:-1]):
                return [scalar(part.strip(), where, number) for part in text[1:-1].split(",") if part.strip()]
            raise _unreadable(where, number, text) from None
    if text[:1] == '"':
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise _unreadable(where, number, text) from None
    if text[:1] == "'":
        if len(text) < 2 or not text.endswith("'"):
            raise _unreadable(where, number, text)
        return text[1:-1].replace("''", "'")
    if text[:1] in ("&", "*", "!", "|", ">", "%", "@", "`"):
        raise _unreadable(where, number, text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.match(text) and not re.match(r"^[-+]?0[0-9_]", text):
        return int(text.replace("_", ""))
    if _FLOAT.match(text) and ("." in text or "e" in text.lower()):
        return float(text.replace("_", ""))
    return text


def _without_comment(line: str) -> str:
    quote = ""
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[index - 1] != "\\" else quote
        elif char in "\"'" and (index == 0 or line[index - 1] in " \t[{,:'"):
            quote = char
        elif char == "#" and (index == 0 or line[index - 1] in " \t"):
            return line[:index]
    return line


def _unreadable(where: str, number: int, text: str) -> InferopsError:
    return InferopsError(
        f"line {number} of {where} is beyond the YAML read here",
        where=f"{where}:{number}",
        why="read are `key: value`, lists of scalars, and JSON on one line",
        do="write the value on one line, nested ones as JSON",
    )
