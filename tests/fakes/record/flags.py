"""Run inside the real engine's environment: print its real parser as JSON (names, arity, choices, defaults, kinds)."""

from __future__ import annotations

import argparse
import json
import sys

KINDS = {
    "_StoreAction": "store",
    "_StoreTrueAction": "store_true",
    "_StoreFalseAction": "store_false",
    "_StoreConstAction": "store_const",
    "_AppendAction": "append",
    "BooleanOptionalAction": "boolean_optional",
    "_HelpAction": "help",
}


def plain(value: object) -> object:
    """The value as JSON knows it, or its text."""
    try:
        return json.loads(json.dumps(value))
    except TypeError:
        return str(value)


def table() -> list[dict[str, object]]:
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    rows = []
    for action in parser._actions:
        kind = KINDS.get(type(action).__name__, type(action).__name__)
        row: dict[str, object] = {"strings": list(action.option_strings), "dest": action.dest, "kind": kind}
        if action.nargs is not None:
            row["nargs"] = action.nargs
        if action.choices is not None:
            row["choices"] = [plain(c) for c in action.choices]
        if action.type is not None:
            row["type"] = getattr(action.type, "__name__", "callable")
        if action.const is not None:
            row["const"] = plain(action.const)
        if action.default is not None:
            row["default"] = plain(action.default)
        if action.required:
            row["required"] = True
        rows.append(row)
    return rows


if __name__ == "__main__":
    json.dump(table(), sys.stdout, indent=None, separators=(",", ":"))
