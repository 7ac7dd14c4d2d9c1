# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From the parameters of the modules to a check or a diff: paths become trees and mappings, arguments become words."""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .answers import Answers
from .check import check
from .diff import Difference, diff
from .find_release import find_release
from .findings import Finding
from .flags import FlagTable, read_flags
from .kept import Texts, kept, may_be_kept
from .live.ask import Container, Interpreter
from .render import render_argv
from .report import Report
from .source import SourceTree, open_source

# The parameters documented in the fragment server_args, as Ansible's argument spec.
COMMAND_LINE: dict[str, Any] = {
    "argv": {"type": "list", "elements": "str"},
    "args": {"type": "dict"},
    "model_config_path": {"type": "path"},
    "facts": {"type": "dict", "default": {}},
    "env": {"type": "dict", "default": {}},
    "accept": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "code": {"type": "str", "required": True},
            "reason": {"type": "str", "required": True},
            "expires": {"type": "str"},
        },
    },
}

_PLACE = re.compile(r"argv\[(\d+)\]")


def read_model_config(path: str | None) -> dict[str, Any] | None:
    """Return config.json of a file or of the folder that holds it; None for None."""
    if path is None:
        return None
    file = Path(path)
    file = file / "config.json" if file.is_dir() else file
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise InferopsError(
            f"the model's config cannot be read: {file}",
            where="model_config_path",
            why=exc.strerror,
            do="give config.json or its folder",
        ) from exc
    except ValueError as exc:
        raise InferopsError(f"{file} is not JSON", where="model_config_path", why=str(exc), do="fetch the model again") from exc
    if not isinstance(config, dict):
        raise InferopsError(f"{file} holds no mapping", where="model_config_path", do="give the model's own config.json")
    return config


def check_with(params: Mapping[str, Any], answers: Answers | None = None) -> tuple[list[str], Report]:
    """Return (argv, report) for the parameters of server_args_check.

    answers: where they are kept. What the live tier says is asked anew each time: it depends on the whole host.
    """
    live = _interpreter(params)
    model_config, env = read_model_config(params.get("model_config_path")), _environment(params)
    accept = params.get("accept") or ()

    def make(trees: list[SourceTree], read: Texts) -> tuple[dict[str, Any], bool]:
        tree = trees[0]
        table = functools.cache(lambda: _table(tree, live))
        argv = _words(params, table) or []
        report = check(
            argv,
            source_root=tree,
            facts=params.get("facts"),
            model_config=model_config,
            env=env,
            accept=accept,
            expect=params.get("expect"),
            read_text=read,
            live=live,
        )
        if params.get("argv") is None and params.get("args"):
            named = [_named(finding, argv, table(), str(params.get("args_label") or "args")) for finding in report.findings]
            report = replace(report, findings=named)
        known = table()
        lasting = live is None and known is not None and may_be_kept([known], argv, env, read, report.undecided)
        return {"argv": argv, "report": report.kept()}, lasting

    told = ("argv", "args", "args_label", "facts", "expect")
    # An acceptance may end with the day.
    day = str(datetime.date.today()) if any(entry.get("expires") for entry in accept) else None
    asked = {name: params.get(name) for name in told}
    asked |= {"what": "module", "model_config": model_config, "env": env, "accept": accept, "day": day}
    found = kept(answers if live is None else None, asked, [params["source_root"]], make)
    return found["argv"], Report.from_kept(found["report"])


def _named(finding: Finding, argv: list[str], table: FlagTable | None, label: str) -> Finding:
    """Return the finding with the place in the mapping that was given, instead of one in the words rendered from it."""
    match = _PLACE.fullmatch(finding.where or "")
    if match is None or int(match[1]) >= len(argv):
        return finding
    word = argv[int(match[1])].partition("=")[0]
    flag = table.by_string(word) if table is not None else None
    name = table.field_of(flag) if table is not None and flag is not None else word.lstrip("-").replace("-", "_")
    return replace(finding, where=f"{label}.{name}")


def diff_with(params: Mapping[str, Any]) -> Difference:
    """Return the difference for the parameters of server_args_diff; a release may be named by its version."""
    folders = params.get("search") or ()
    old, new = (open_source(find_release(params[name], folders)) for name in ("from_source", "to_source"))
    return diff(
        old,
        new,
        _words(params, lambda: read_flags(old)),
        facts=params.get("facts"),
        model_config=read_model_config(params.get("model_config_path")),
        env=_environment(params),
        accept=params.get("accept") or (),
    )


def _interpreter(params: Mapping[str, Any]) -> Interpreter | None:
    python = params.get("live_python")
    if not python:
        return None
    said = params.get("live_container") or {}
    container = Container(said["image"], said.get("args") or (), said.get("volumes") or ()) if said.get("image") else None
    return Interpreter(str(python), _environment(params), user=params.get("live_user"), container=container)


def _table(tree: SourceTree, live: Interpreter | None) -> FlagTable | None:
    """Return the table to spell with; None, spelling by rule, for a release that only the live tier can answer for."""
    try:
        return read_flags(tree)
    except InferopsError:
        if live is None:
            raise
        return None


def _words(params: Mapping[str, Any], table: Callable[[], FlagTable | None]) -> list[str] | None:
    """Return the words given, or the arguments spelled for the release; None where neither is given."""
    if params.get("argv") is not None:
        return list(params["argv"])
    return None if params.get("args") is None else render_argv(params["args"], table())


def _environment(params: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in (params.get("env") or {}).items()}
