"""Parse a real command line with a parser rebuilt from the recorded flag table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _human_int(text: str) -> int:
    scale = {"k": 10**3, "m": 10**6, "K": 1 << 10, "M": 1 << 20}
    return int(float(text[:-1]) * scale[text[-1]]) if text and text[-1] in scale else int(text)


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "loads": json.loads,
    "json_list_type": json.loads,
    "parse_cuda_graph_config_arg": json.loads,
    "human_readable_int": _human_int,
    "nullable_str": lambda text: None if text in ("", "None", "null") else text,
}


class _Explicit(argparse.Namespace):
    """Remembers nothing but what was given: defaults are suppressed and added afterwards."""


def build_parser(flags: Sequence[dict[str, Any]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sglang serve", argument_default=argparse.SUPPRESS)
    for row in flags:
        if row["kind"] == "help":
            continue
        options: dict[str, Any] = {"dest": row["dest"], "default": argparse.SUPPRESS}
        kind = row["kind"]
        strings = row["strings"]
        if kind == "boolean_optional":
            options["action"] = argparse.BooleanOptionalAction
            strings = [s for s in strings if not s.startswith("--no-")] or strings
        elif kind in ("store_true", "DeprecatedStoreTrueAction"):
            options["action"] = "store_true"
        elif kind == "store_false":
            options["action"] = "store_false"
        else:
            options["action"] = "append" if kind == "append" else "store"
            options["type"] = TYPES.get(row.get("type", ""), str)
            if "nargs" in row:
                options["nargs"] = row["nargs"]
            if "const" in row:
                options["const"] = row["const"]
            if "choices" in row:
                options["choices"] = row["choices"]
            if row.get("required"):
                options["required"] = True
        parser.add_argument(*strings, **options)
    return parser


def read_config(path: Path) -> list[str]:
    """The words that a ``--config`` file stands for: one ``key: value`` a line; true is the bare flag, false nothing."""
    words: list[str] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split(" #")[0].strip()
        if not text or text.startswith("#") or text == "---":
            continue
        key, colon, value = text.partition(":")
        if not colon:
            raise ValueError(f"{path}:{number}: not `key: value`: {line!r}")
        value = value.strip()
        if value[:1] in "\"'" and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        flag = "--" + key.strip().replace("_", "-")
        if value.lower() == "true":
            words.append(flag)
        elif value.lower() != "false":
            words += [flag, value]
    return words


def merge_config(argv: Sequence[str]) -> list[str]:
    """Put the words of ``--config FILE`` before the others, so that the command line wins, as SGLang does."""
    words, config = list(argv), []
    for index, word in enumerate(argv):
        if word == "--config" and index + 1 < len(argv):
            config = read_config(Path(argv[index + 1]))
            del words[index : index + 2]
        elif word.startswith("--config="):
            config = read_config(Path(word.partition("=")[2]))
            del words[index]
    return config + words


def parse(flags: Sequence[dict[str, Any]], argv: Sequence[str]) -> dict[str, Any]:
    """Field → value for what was given explicitly; exits with argparse's own message and status 2 otherwise."""
    return vars(build_parser(flags).parse_args(merge_config(argv), _Explicit()))


def defaults(flags: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for row in flags:
        if row["kind"] != "help":
            store_true = row["kind"] == "store_true"
            values.setdefault(row["dest"], row.get("default", False if store_true else None))
    return values
