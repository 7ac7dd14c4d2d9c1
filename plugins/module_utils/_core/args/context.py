# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything a rule may look at, gathered once per check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .facts import Facts
from .flags import UNKNOWN, FlagTable
from .parser import Parsed
from .source import SourceTree

# A field whose value must not leave the check: /server_info and logs print them, reports must not.
SECRET = re.compile(r"(^|_)(api_key|password|secret|token)$|watermark_(key|config)")


@dataclass(frozen=True)
class Context:
    """One command line of one release. ``resolve`` resolves a changed copy of the parsed arguments."""

    tree: SourceTree
    table: FlagTable
    argv: Sequence[str]
    parsed: Parsed
    facts: Facts
    model_config: Mapping[str, Any] | None
    env: Mapping[str, str]
    resolution: Any
    resolve: Callable[[Parsed], Any]

    def asked(self, name: str) -> Any:
        """Return what was asked for a field, or its default; None for a field the release does not have."""
        return self.parsed.values.get(name)

    def effective(self, name: str) -> Any:
        """Return what a field results in, UNKNOWN where the check cannot decide it."""
        return effective(self.resolution, name, self.table)

    def spelled(self, name: str) -> str:
        """Return the flag of a field as it stands in argv, else as it would be written."""
        return self.parsed.explicit.get(name) or self.table.spell(name)

    def position(self, word: str | None) -> int:
        """Return the index in argv of a flag as spelled, -1 where it does not stand there."""
        for index, given in enumerate(self.argv):
            if word is not None and given.partition("=")[0] == word.partition("=")[0]:
                return index
        return -1

    def place(self, word: str | None) -> str | None:
        """Return ``argv[3]`` for a flag that stands there."""
        index = self.position(word)
        return f"argv[{index}]" if index >= 0 else None

    def at(self, word: str | None) -> dict[str, Any]:
        """Return what a finding says of a flag as spelled and of its place: flag, where, position."""
        return {"flag": word, "where": self.place(word), "position": self.position(word)}

    def without(self, *names: str) -> Parsed:
        """Return the parsed arguments as if these fields had not been named."""
        values = dict(self.parsed.values)
        values.update({name: self.table.default_of(name) for name in names if name in values})
        explicit = {name: spelled for name, spelled in self.parsed.explicit.items() if name not in names}
        uses = tuple(use for use in self.parsed.uses if use.field not in names)
        return replace(self.parsed, values=values, explicit=explicit, uses=uses)

    def line(self, rel: str, *needles: str) -> str | None:
        """Return file:line of the first line of a file that holds all the texts, None where there is none."""
        for number, text in enumerate((self.tree.read(rel) or "").splitlines(), start=1):
            if all(needle in text for needle in needles):
                return f"{rel}:{number}"
        return None


def effective(resolution: Any, name: str, table: FlagTable | None = None) -> Any:
    """Return a resolved field; UNKNOWN where undecided, None where the release has no such field."""
    if name in resolution.effective:
        return resolution.effective[name]
    if any(entry["field"] == name or entry["field"].startswith(name + ".") for entry in resolution.undecided):
        return UNKNOWN
    if table is not None and name.partition(".")[0] not in table.fields:
        return None
    return UNKNOWN


def is_secret(field: str) -> bool:
    """Whether a field holds a secret.

    >>> is_secret("admin_api_key"), is_secret("tokenizer_path"), is_secret("ssl_keyfile_password")
    (True, False, True)
    """
    return SECRET.search(field) is not None


def hide_secrets(text: str, argv: Sequence[str]) -> str:
    """Return a text without the values argv gives to secret-looking flags, also misspelled ones.

    >>> hide_secrets("unrecognized arguments: --api_key abc", ["--api_key", "abc"])
    'unrecognized arguments: --api_key …'
    """
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if not name.startswith("-") or not is_secret(name.strip("-").replace("-", "_")):
            continue
        if not equals:
            value = argv[index + 1] if index + 1 < len(argv) else ""
        if value and not value.startswith("--"):
            text = text.replace(value, "…")
    return text


def shown(value: Any) -> str:
    """Return a value as a person would write it in a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list) and len(value) > 8:
        return f"a list of {len(value)}"
    return str(value)
