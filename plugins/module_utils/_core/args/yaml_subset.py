# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The YAML a file of server options uses, read with the standard library as PyYAML's safe_load reads it.

Read are block mappings and lists, flow ones on one line, and scalars on one line with YAML 1.1's own types (``yes`` is true,
``010`` is eight, ``1:30`` is ninety). Anything beyond raises InferopsError naming the line; nothing is guessed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import InferopsError

_WORDS = dict.fromkeys(["yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True)
_WORDS |= dict.fromkeys(["no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False)
_NULLS = ("", "~", "null", "Null", "NULL")
_INT = re.compile(r"[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)")
_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*"
)
_FLOAT_WORDS = {sign + "." + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")}
_FLOAT_WORDS |= dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
_DATE = re.compile(r"[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt \t].*)?")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " "}
_ESCAPES |= {'"': '"', "\\": "\\", "/": "/", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}
_HEX = {"x": 2, "u": 4, "U": 8}
_DEEPEST = 20
# A character no plain scalar starts with; `-`, `?` and `:` may, where no space follows.
_INDICATORS = ",[]{}#&*!|>'\"%@`"


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str


def read_yaml(text: str, where: str) -> Any:
    """Return what a file holds; an empty one holds None."""
    reader = _Reader(where)
    lines = reader.lines(text)
    if not lines:
        return None
    value = reader.block(lines, 0)
    if lines:
        reader.refuse(lines[0].number)
    return value


class _Reader:
    """Reads one document; `where` names it in refusals."""

    def __init__(self, where: str) -> None:
        self.where = where

    def refuse(self, number: int) -> NoReturn:
        raise InferopsError(
            f"line {number} of {self.where} is beyond the YAML read here",
            where=f"{self.where}:{number}",
            why="read are `key: value`, block mappings and lists, and [..] or {..} on one line",
            do="write the value on one line, nested ones as JSON",
        )

    def lines(self, text: str) -> list[_Line]:
        out: list[_Line] = []
        for number, raw in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), start=1):
            begins = not out and (raw == "---" or raw.startswith("--- "))
            marks = raw.startswith(("---", "%")) or (raw.startswith("...") and raw.strip() != "...")
            if any(not char.isprintable() for char in raw) or (marks and not begins) or (out and out[-1].text == "..."):
                self.refuse(number)
            line = _without_comment(raw[4:] if begins else raw).rstrip()
            if line:
                out.append(_Line(number, len(line) - len(line.lstrip()), line.lstrip()))
        return out[:-1] if out and out[-1].text == "..." else out

    def block(self, lines: list[_Line], depth: int) -> Any:
        """Take the lines of one node off the front and return its value."""
        first = lines[0]
        if depth > _DEEPEST:
            self.refuse(first.number)
        if first.text == "-" or first.text.startswith("- "):
            return self._items(lines, first.indent, depth)
        if self._key(first) is not None:
            return self._mapping(lines, first.indent, depth)
        lines.pop(0)
        return self.value(first.text, first.number)

    def _items(self, lines: list[_Line], indent: int, depth: int) -> list[Any]:
        out = []
        while lines and lines[0].indent == indent and (lines[0].text == "-" or lines[0].text.startswith("- ")):
            line = lines.pop(0)
            inner = line.text[1:].lstrip()
            if inner:
                lines.insert(0, _Line(line.number, indent + len(line.text) - len(inner), inner))
            out.append(self.block(lines, depth + 1) if lines and lines[0].indent > indent else None)
        return out

    def _mapping(self, lines: list[_Line], indent: int, depth: int) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        while lines and lines[0].indent == indent:
            line = lines.pop(0)
            found = self._key(line)
            if found is None:
                self.refuse(line.number)
            key, rest = found
            if rest:
                out[key] = self.value(rest, line.number)
            elif lines and (lines[0].indent > indent or (lines[0].indent == indent and lines[0].text.startswith("- "))):
                out[key] = self.block(lines, depth + 1)
            else:
                out[key] = None
            if lines and lines[0].indent > indent:
                self.refuse(lines[0].number)
        return out

    def _key(self, line: _Line) -> tuple[Any, str] | None:
        """Return (key, rest) of a line ``key: rest``; None for one that is no mapping entry."""
        if line.text[0] in "[{":
            return None
        if line.text[0] in "\"'":
            end = _quoted_end(line.text)
            rest = line.text[end:].lstrip() if end else ""
            if not rest.startswith(":") or (len(rest) > 1 and rest[1] != " "):
                return None
            return self.value(line.text[:end], line.number), rest[1:].strip()
        head, colon, rest = (line.text + " ").partition(": ")
        if not colon:
            return None
        key = self.value(head.rstrip(), line.number)
        if isinstance(key, (list, dict)) or head.strip() == "":
            self.refuse(line.number)
        return key, rest.strip()

    def value(self, text: str, number: int) -> Any:
        """Return the value of one scalar or flow collection that fills its line."""
        if text[:1] in ("[", "{"):
            value, rest = self._flow(text, number, 0)
            if rest.strip():
                self.refuse(number)
            return value
        if text[:1] in ("'", '"'):
            end = _quoted_end(text)
            if end != len(text):
                self.refuse(number)
            return self._quoted(text, number)
        if ": " in text or text.endswith(":"):
            self.refuse(number)
        return self._plain(text, number)

    def _quoted(self, text: str, number: int) -> str:
        inner = text[1:-1]
        if text[0] == "'":
            return inner.replace("''", "'")
        out, at = [], 0
        while at < len(inner):
            if inner[at] != "\\":
                out.append(inner[at])
                at += 1
                continue
            code = inner[at + 1]
            digits = inner[at + 2 : at + 2 + _HEX.get(code, 0)]
            if code in _HEX and re.fullmatch(f"[0-9a-fA-F]{{{_HEX[code]}}}", digits) and int(digits, 16) < 0x110000:
                out.append(chr(int(digits, 16)))
            elif code in _ESCAPES:
                out.append(_ESCAPES[code])
            else:
                self.refuse(number)
            at += 2 + len(digits)
        return "".join(out)

    def _plain(self, text: str, number: int) -> Any:
        if text and (text[0] in _INDICATORS or (text[0] in "-?:" and (len(text) == 1 or text[1] == " "))):
            self.refuse(number)
        if text in ("<<", "=") or _DATE.fullmatch(text):
            self.refuse(number)
        if text in _NULLS:
            return None
        if text in _WORDS:
            return _WORDS[text]
        if text in _FLOAT_WORDS:
            return _FLOAT_WORDS[text]
        try:
            if _INT.fullmatch(text):
                return _integer(text.replace("_", ""))
            if _FLOAT.fullmatch(text):
                return _sexagesimal(text.replace("_", ""), float)
        except ValueError:
            self.refuse(number)
        return text

    def _flow(self, text: str, number: int, depth: int) -> tuple[Any, str]:
        """Return (value, what follows it) of a flow node."""
        if depth > _DEEPEST or not text:
            self.refuse(number)
        if text[0] in "[{":
            return self._collection(text, number, depth)
        if text[0] in "'\"":
            end = _quoted_end(text)
            if not end:
                self.refuse(number)
            return self._quoted(text[:end], number), text[end:]
        end = next((at for at, char in enumerate(text) if char in ",[]{}" or text[at : at + 2] == ": "), len(text))
        plain = text[:end].strip()
        if not plain or "?" in plain or plain.endswith(":") or " #" in plain:
            self.refuse(number)
        return self._plain(plain, number), text[end:]

    def _collection(self, text: str, number: int, depth: int) -> tuple[Any, str]:
        mapping = text[0] == "{"
        items: list[Any] = []
        rest = text[1:].lstrip()
        while not rest.startswith("}" if mapping else "]"):
            value, rest = self._flow(rest, number, depth + 1)
            rest = rest.lstrip()
            if mapping:
                if isinstance(value, (list, dict)) or not rest.startswith(":") or rest[1:2] not in ("", " "):
                    self.refuse(number)
                inner, rest = self._flow(rest[1:].lstrip(), number, depth + 1)
                value, rest = (value, inner), rest.lstrip()
            items.append(value)
            if rest.startswith(","):
                rest = rest[1:].lstrip()
            elif not rest.startswith("}" if mapping else "]"):
                self.refuse(number)
        return (dict(items) if mapping else items), rest[1:]


def _integer(text: str) -> int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    for prefix, base in (("0b", 2), ("0x", 16), ("0", 8)):
        if digits.startswith(prefix) and digits != "0":
            return sign * int(digits[len(prefix) :] or "x", base)
    return int(_sexagesimal(text, int))


def _sexagesimal(text: str, kind: type[int] | type[float]) -> int | float:
    sign, total = (-1 if text[0] == "-" else 1), kind(0)
    for part in text.lstrip("+-").split(":"):
        total = total * 60 + kind(part)
    return sign * total


def _quoted_end(text: str) -> int:
    """Return where the quoted scalar at the start of text ends, 0 where it does not."""
    match = re.match(r"'(?:[^']|'')*'" if text[0] == "'" else r'"(?:[^"\\]|\\.)*"', text)
    return match.end() if match else 0


def _without_comment(line: str) -> str:
    at = 0
    while at < len(line):
        before = line[at - 1] if at else " "
        if line[at] == "#" and before == " ":
            return line[:at]
        at += (_quoted_end(line[at:]) if line[at] in "\"'" and before in " [{,:" else 0) or 1
    return line
