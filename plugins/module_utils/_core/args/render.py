# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From a mapping keyed by SGLang's field names to a list of words, so that parsing the words gives the mapping back."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from ..errors import InferopsError
from .flags import Flag, FlagTable

_JSON_TYPES = ("json.loads", "json_list_type", "parse_cuda_graph_config_arg")


def render_argv(args: Mapping[str, Any], table: FlagTable | None = None) -> list[str]:
    """Return argv for arguments, in the order given. None is left out; so is False for a plain switch.

    With a flag table names are checked and spelled for that release, a switch that has a ``--no-…`` twin is written either way,
    and a field may be named by any of its long spellings; without one each name is written as ``--name-with-dashes``.
    Raises InferopsError for a name the release does not have, one field named twice, a value argv cannot carry.

    >>> render_argv({"pp_size": 8, "trust_remote_code": True, "disable_radix_cache": False, "cuda_graph_bs_decode": [1, 2]})
    ['--pp-size', '8', '--trust-remote-code', '--cuda-graph-bs-decode', '1', '2']
    >>> render_argv({"model_loader_extra_config": {"num_threads": 8}, "tool_server": None, "chat_template": "-x"})
    ['--model-loader-extra-config', '{"num_threads": 8}', '--chat-template=-x']
    """
    words: list[str] = []
    owners: dict[str, str] = {}
    for name, value in args.items():
        flag = _find(name, table) if table is not None else None
        field = table.field_of(flag) if table is not None and flag is not None else name.replace("-", "_")
        if field in owners:
            raise InferopsError(
                f"{field} is set twice, as {owners[field]} and as {name}", where=f"arguments.{name}", do="keep one owner per flag"
            )
        owners[field] = name
        if value is not None:
            spelled = "--" + field.replace("_", "-") if table is None or flag is None else _spell(name, field, flag, table)
            words += _words(spelled, value, flag, name)
    return words


def _find(name: str, table: FlagTable) -> Flag:
    string = "--" + name.replace("_", "-")
    flag = table.flag_for(name) or table.by_string(string)
    if flag is not None:
        return flag
    known = {flag.long[2:].replace("-", "_") for flag in table.flags} | set(table.fields)
    near = difflib.get_close_matches(name, sorted(known), n=1)
    raise InferopsError(
        f"{name} is not an argument of SGLang {table.version}",
        where=f"arguments.{name}",
        why="no flag of this release sets it" if name in table.fields else "the installed source defines no such flag",
        do=f"write {near[0]}" if near else "see `inferops flags --source …` for the names of this release",
    )


def _spell(name: str, field: str, flag: Flag, table: FlagTable) -> str:
    string = "--" + name.replace("_", "-")
    return string if string in flag.strings else table.spell(field)


def _words(spelled: str, value: Any, flag: Flag | None, name: str) -> list[str]:
    if isinstance(value, bool):
        return _switch(spelled, value, flag, name)
    if flag is not None and _takes_nothing(flag):
        raise InferopsError(f"{name} is a switch, not {value!r}", where=f"arguments.{name}", do="write true or false")
    if isinstance(value, (list, tuple)) and not (flag is not None and flag.type in _JSON_TYPES):
        if flag is not None and flag.nargs not in ("+", "*"):
            raise InferopsError(f"{name} takes one value, not a list", where=f"arguments.{name}", do="write the value itself")
        return [spelled, *[_item(item, name) for item in value]] if value or (flag and flag.nargs == "*") else []
    text = _text(value)
    return [f"{spelled}={text}"] if text.startswith("-") and not _is_number(value) else [spelled, text]


def _switch(spelled: str, value: bool, flag: Flag | None, name: str) -> list[str]:
    if flag is not None and flag.action == "boolean_optional":
        return [spelled] if value else ["--no-" + spelled[2:]]
    if flag is not None and not _takes_nothing(flag):
        raise InferopsError(f"{name} takes a value, not {str(value).lower()}", where=f"arguments.{name}", do="write the value")
    return [spelled] if value else []


def _takes_nothing(flag: Flag) -> bool:
    if flag.action in ("deprecated_const", "deprecated_true"):
        return not flag.choices
    return flag.action in ("store_true", "store_false", "store_const", "boolean_optional", "deprecated")


def _item(item: Any, name: str) -> str:
    text = _text(item)
    if text.startswith("-") and not _is_number(item):
        raise InferopsError(
            f"{name} has an element that starts with a dash: {text}",
            where=f"arguments.{name}",
            why="the parser would take it for a flag",
            do="give it another way, such as ./-name for a path",
        )
    return text


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    """Whether argparse takes a text with a leading dash for a number: -1, -0.5, but not -1e-05."""
    text = _text(value)
    return isinstance(value, (int, float)) and "e" not in text and "n" not in text
