# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the running server writes to the argument record again: scheduler, model runner, speculative workers, models.

By text: parsing every file of the server for one notice would cost more than the check itself. A test holds the list against
the syntax trees; ``explain`` has the conditions around each place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .source import ARGUMENT_CODE, LANDMARK, SERVER, SourceTree
from .writes import NESTED

# Up to 0.5.15 any code may write on the record. From 0.5.16 on it watches over that itself, and its writers go another way.
WATCHED = re.compile(r"^    def __setattr__\(self", re.MULTILINE)
ANY = "*"
_MARK = "server_args"
_RECORD = rf"[\w.\[\]()]*{_MARK}(?:\(\))?"
_ALIAS = re.compile(rf"[ \t]*(\w+) = {_RECORD}(\.{NESTED}[\w.]*)?$")
_SETATTR = re.compile(rf"\bsetattr\(\s*{_RECORD},\s*(?:[\"'](\w+)[\"'])?")
# One target or several, of an assignment on this line, or each on a line of its own and one ending in a comma.
_ASSIGNED = re.compile(r"([ \t]*[\w.\[\]()]+(?:, [\w.\[\]()]+)*)(?:(,$)|(?:: [^=]+)? (?:[-+*/|&]|//)?=(?: |$))")
# Targets in parentheses stand one a line; what ends them is an assignment.
_MORE_TARGETS = re.compile(r"(?:\s*[\w.\[\]()]+,$)*\s*\) = ", re.MULTILINE)


def late_writers(tree: SourceTree) -> dict[str, tuple[str, ...]]:
    """Return {field: places (file:line) outside the argument code that set it}; ``*`` for a name the source computes."""
    if "late" not in tree.memo:
        found: dict[str, set[tuple[str, int]]] = {}
        for rel, text in () if WATCHED.search(tree.read(LANDMARK) or "") else tree.search(_MARK, SERVER):
            for name, offset in () if rel.startswith(ARGUMENT_CODE) else _writes(text):
                found.setdefault(name, set()).add((rel, text.count("\n", 0, offset) + 1))
        tree.memo["late"] = {name: tuple(f"{rel}:{line}" for rel, line in sorted(found[name])) for name in sorted(found)}
    memo: dict[str, tuple[str, ...]] = tree.memo["late"]
    return memo


def _writes(text: str) -> Iterator[tuple[str, int]]:
    """Return (field, start of the line) of every write on the record, also under another name of it or of its graph settings."""
    record = re.compile(rf"(?:^|[ \t])({_RECORD})\.(\w+)")
    aliases: dict[str, str | None] = {}
    for start, line in _lines(text, _MARK):
        if (match := _ALIAS.match(line)) and not match[1].endswith(_MARK):
            aliases[match[1]] = match[2]
        elif targets := _targets(text, start, line):
            yield from ((match[2], start) for match in record.finditer(targets))
        elif "setattr(" in line and (match := _SETATTR.search(text, start + line.index("setattr("))):
            yield match[1] or ANY, start
    for alias, nested in aliases.items():
        record = re.compile(rf"(?:^|[ \t])({alias})\.(\w+)")
        for start, line in _lines(text, f"{alias}."):
            for match in record.finditer(_targets(text, start, line)):
                yield NESTED if nested else match[2], start


def _lines(text: str, mark: str) -> Iterator[tuple[int, str]]:
    """Return each line that holds the mark, with where it starts."""
    at = text.find(mark)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, text[start:end]
        at = text.find(mark, end)


def _targets(text: str, start: int, line: str) -> str:
    """Return the part of a line that is assigned to, empty where none is."""
    match = _ASSIGNED.match(line)
    if match is None or (match[2] and not _MORE_TARGETS.match(text, start + len(line))):
        return ""
    return match[1]
