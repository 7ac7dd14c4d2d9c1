# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Words as systemd reads them: quoting for ExecStart= and Environment=, and the way back.

Source: systemd.service(5) "Command lines" and systemd.syntax(7) "Quoting"; checked against systemd 252 by
tests/unit/plugins/module_utils/_core/release/test_systemd.py and the lab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import InferopsError

SAFE = re.compile(r"[A-Za-z0-9_@+=:,./^-]+\Z")
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
BLANK = " \t\n\r"


def quote_word(word: str, *, exec_line: bool = True) -> str:
    """Return one word so that systemd hands over exactly these characters.

    ``exec_line`` is false for Environment=, where ``$`` has no meaning and must not be doubled.

    >>> quote_word("a b"), quote_word("50%"), quote_word("$HOME"), quote_word("")
    ('"a b"', '"50%%"', '"$$HOME"', '""')
    """
    if "\0" in word or any(0xD800 <= ord(char) <= 0xDFFF for char in word):
        raise InferopsError(
            f"{word!r} cannot be passed on a command line",
            where="systemd_quote",
            why="it holds a NUL or is not valid UTF-8",
            do="remove that character",
        )
    if SAFE.match(word):
        return word
    out = []
    for char in word:
        if char == "%" or (char == "$" and exec_line):
            out.append(char * 2)
        elif char in NAMED:
            out.append(NAMED[char])
        elif ord(char) < 0x20 or ord(char) == 0x7F:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def quote(words: Iterable[str], *, exec_line: bool = True) -> str:
    """Return a command line of quoted words.

    >>> quote(["serve", "--name", "a b"])
    'serve --name "a b"'
    """
    return " ".join(quote_word(word, exec_line=exec_line) for word in words)


def split(line: str) -> list[str]:
    """Return the words of a line, quotes and escapes resolved, specifiers and variables left as they stand."""
    words: list[str] = []
    position = 0
    while position < len(line):
        if line[position] in BLANK:
            position += 1
            continue
        word, position = _read_word(line, position)
        words.append(word)
    return words


def unquote(line: str, *, exec_line: bool = True) -> list[str]:
    """Return the words that ``quote`` was given; raise InferopsError where the line refers to a specifier or variable.

    >>> unquote('serve "50%%" "$$HOME"')
    ['serve', '50%', '$HOME']
    """
    return [literal(word, exec_line=exec_line) for word in split(line)]


def literal(word: str, *, exec_line: bool = True) -> str:
    """Return a split word with ``%%`` and ``$$`` taken back to one."""
    out: list[str] = []
    position = 0
    while position < len(word):
        char = word[position]
        if char == "%" or (char == "$" and exec_line):
            if word[position : position + 2] != char * 2:
                raise InferopsError(
                    f"{word!r} holds a bare {char}",
                    where="unit",
                    why="systemd replaces it by a specifier or a variable",
                    do=f"write {char}{char}",
                )
            position += 1
        out.append(char)
        position += 1
    return "".join(out)


def setting(unit: str, name: str) -> list[str]:
    """Return every value of a setting in a unit text, continued lines joined.

    >>> setting("[Service]\\nExecStart=a \\\\\\n  b\\n", "ExecStart")
    ['a    b']
    """
    joined = re.sub(r"\\\n", "  ", unit)
    return re.findall(rf"^{re.escape(name)}=(.*)$", joined, flags=re.MULTILINE)


def without_section(unit: str, section: str) -> str:
    """Return a unit text without one of its sections."""
    kept: list[str] = []
    inside = False
    for line in unit.splitlines(keepends=True):
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        if not inside:
            kept.append(line)
    return "".join(kept)


def _read_word(line: str, position: int) -> tuple[str, int]:
    out = bytearray()
    quote_char = ""
    while position < len(line):
        char = line[position]
        if char == "\\":
            value, position = _read_escape(line, position + 1)
            out += value
            continue
        position += 1
        if quote_char:
            if char == quote_char:
                quote_char = ""
                continue
        elif char in "'\"":
            quote_char = char
            continue
        elif char in BLANK:
            break
        out += char.encode()
    if quote_char:
        raise InferopsError(f"a {quote_char} is opened and not closed", where="unit", do="close the quotation")
    return out.decode(), position


def _read_escape(line: str, position: int) -> tuple[bytes, int]:
    char = line[position : position + 1]
    if char == "x" and re.match(r"[0-9a-fA-F]{2}", line[position + 1 : position + 3]):
        return bytes([int(line[position + 1 : position + 3], 16)]), position + 3
    if char in ESCAPES:
        return ESCAPES[char].encode(), position + 1
    if char and char in "\\\"'":
        return char.encode(), position + 1
    raise InferopsError(f"\\{char} is not an escape that systemd knows", where="unit", do="write \\\\ for a backslash")
