# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The flags hidden in ``--config FILE``: put into argv where the release would put them.

Source: ConfigArgumentMerger in srt/server_args_config_parser.py (0.5.3 … 0.5.13), later srt/utils/server_args_config_parser.py.
The file's words come first, so that the command line wins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .flags import Flag, FlagTable
from .parser import ArgvError
from .yaml_subset import read_mapping

FLAG = "--config"


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
    options = read_mapping(read(path), path)
    return [word for key, value in options.items() for word in _words(table, key, value)] + words[:at] + words[at + 2 :]


def _words(table: FlagTable, key: str, value: Any) -> list[str]:
    flag = _flag(table, key)
    if flag is not None and _unsupported(flag):
        name = key.replace("-", "_")
        raise ArgvError(f"Unsupported config option '{name}'", flag=f"--{key}")
    if isinstance(value, bool):
        if flag is not None and flag.action == "store_true":
            return [f"--{key}"] if value else []
        return [f"--{key}", str(value).lower()]
    if isinstance(value, list):
        return [f"--{key}", *[str(item) for item in value]] if value else []
    return [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]


def _flag(table: FlagTable, key: str) -> Flag | None:
    name = key.replace("-", "_")
    return next((flag for flag in table.flags if flag.dest == name), None) or table.by_string("--" + key.replace("_", "-"))


def _unsupported(flag: Flag) -> bool:
    if flag.action in ("boolean_optional", "lora_paths", "deprecated_true", "deprecated"):
        return True
    return flag.action == "deprecated_const" and not flag.choices
