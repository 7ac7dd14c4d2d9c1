# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The flags hidden in ``--config FILE``: put into argv where the release would put them.

Source: ConfigArgumentMerger in srt/server_args_config_parser.py (0.5.3 … 0.5.18), later srt/utils/server_args_config_parser.py.
The file's words come first, so that the command line wins. What the releases do differently is read from that file.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .flags import Flag, FlagTable
from .parser import ArgvError
from .readers.names import tail
from .source import LANDMARK, SourceTree

FLAG = "--config"
_MERGER = "ConfigArgumentMerger"
_FILES = ("srt/utils/server_args_config_parser.py", "srt/server_args_config_parser.py")


@dataclass(frozen=True)
class ConfigRules:
    """How a release turns the file into words.

    knows_flags: it is given the parser, so false switches are left out and options it cannot write are refused (0.5.8 …);
    before, each true value becomes a bare flag and each false one nothing.
    json_mappings: mappings are written as JSON (0.5.14 …), before as Python prints them.
    every_spelling: a key may be any long spelling of a flag, and each flag with one value may be written (0.5.23 …).
    """

    knows_flags: bool
    json_mappings: bool
    every_spelling: bool


def read_rules(tree: SourceTree) -> ConfigRules | None:
    """Return how this release merges the file, None where the file that does it is not where it has been."""
    rel = next((name for name in _FILES if tree.exists(name)), "")
    merger, record = tree.module(rel) if rel else None, tree.module(LANDMARK)
    if merger is None or record is None:
        return None
    near = [stmt for chunk in tree.outline(LANDMARK).chunks if _MERGER in chunk.text for stmt in chunk.parse()]
    made = [node for stmt in near for node in ast.walk(stmt) if isinstance(node, ast.Call) and tail(node.func) == _MERGER]
    names = {tail(node.func) for node in ast.walk(merger) if isinstance(node, ast.Call)}
    spellings = any(isinstance(node, ast.Attribute) and node.attr == "nargs" for node in ast.walk(merger))
    return ConfigRules(any(call.args for call in made), "dumps" in names, spellings)


def read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def merge(table: FlagTable, argv: Sequence[str], read: Callable[[str], str] = read_text) -> list[str]:
    """Return argv with the file's options in place of ``--config FILE``; argv itself where there is none.

    Raises ArgvError for what the release refuses, OSError where the file cannot be read here, InferopsError for YAML beyond ours.
    """
    words = list(argv)
    if FLAG not in words or table.by_string(FLAG) is None:
        return words
    if words.count(FLAG) > 1:
        raise ArgvError("Multiple config files specified! Only one allowed.", flag=FLAG)
    at = words.index(FLAG)
    if at == len(words) - 1:
        raise ArgvError("No config file specified after --config flag!", flag=FLAG)
    path = words[at + 1]
    if Path(path).suffix.lower() not in (".yaml", ".yml"):
        raise ArgvError(f"Config file must be YAML format, got: {Path(path).suffix}", flag=FLAG)
    if table.config is None:
        raise InferopsError(
            f"how SGLang {table.version} merges {path} is not known here",
            where=f"{FLAG} {path}",
            why=f"{_MERGER} is in none of {', '.join(_FILES)}",
            do="put the options into the arguments",
        )
    from .yaml_subset import read_yaml  # deferred: most command lines name no file

    options = read_yaml(read(path), path)
    if not isinstance(options, (dict, type(None))):
        raise ArgvError("Config file must contain a dictionary at root level", flag=FLAG)
    writer = _Writer(table, table.config)
    return [word for key, value in (options or {}).items() for word in writer.words(key, value)] + words[:at] + words[at + 2 :]


class _Writer:
    """Writes one option of the file as words."""

    def __init__(self, table: FlagTable, rules: ConfigRules) -> None:
        self.rules = rules
        self.switches: set[str] = set()
        self.refused: dict[str, str] = {}
        if not rules.knows_flags:
            return
        usable: set[str] = set()
        for flag in table.flags:
            if flag.action == "store_true":
                self.switches |= self._keys(flag)
            if self._writable(flag):
                usable |= self._keys(flag)
            elif FLAG not in flag.strings:
                kind = (
                    flag.act.name if flag.act else "BooleanOptionalAction" if flag.action == "boolean_optional" else flag.action
                )
                self.refused |= dict.fromkeys(self._keys(flag), kind)
        if rules.every_spelling:
            self.refused = {key: kind for key, kind in self.refused.items() if key not in usable}

    def _keys(self, flag: Flag) -> set[str]:
        if not self.rules.every_spelling:
            return {flag.dest}
        return {flag.dest} | {string[2:].replace("-", "_") for string in flag.spellings if string.startswith("--")}

    def _writable(self, flag: Flag) -> bool:
        if flag.action in ("store", "store_true"):
            return True
        return self.rules.every_spelling and flag.nargs is None and flag.action != "boolean_optional"

    def words(self, key: Any, value: Any) -> list[str]:
        if self.rules.knows_flags:
            if not isinstance(key, str):
                raise ArgvError(f"{type(key).__name__!r} object has no attribute 'replace'", flag=FLAG)
            name = key.replace("-", "_")
            if name in self.refused:
                raise ArgvError(f"Unsupported config option '{name}' with action '{self.refused[name]}'", flag=f"--{key}")
            if isinstance(value, bool) and name not in self.switches:
                return [f"--{key}", str(value).lower()]
        if isinstance(value, bool):
            return [f"--{key}"] if value else []
        if isinstance(value, list):
            return [f"--{key}", *[str(item) for item in value]] if value else []
        return [f"--{key}", json.dumps(value) if isinstance(value, dict) and self.rules.json_mappings else str(value)]
