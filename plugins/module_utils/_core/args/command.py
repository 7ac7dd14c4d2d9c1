# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Subcommands of the args area: check, explain, flags, diff. The words after ``--`` are the server's arguments."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InferopsError
from .report import Report, jsonable
from .topics import TOPICS

if TYPE_CHECKING:
    from .flags import FlagTable


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    one = commands.add_parser("check", help="check launch arguments against the source of a release")
    _source(one)
    _situation(one)
    one.add_argument("--accept", action="append", default=[], metavar="CODE=REASON", help="let a finding pass, with a reason")
    one.add_argument("--expect", action="append", default=[], metavar="FIELD=VALUE", help="what must be true of the server")
    one.add_argument(
        "--live",
        metavar="PYTHON",
        help="interpreter of the installed release: SGLang itself is asked too, and its answer counts",
    )
    one.add_argument("--format", choices=("text", "json", "junit", "github"), default="text")
    one.set_defaults(run=run_check)

    why = commands.add_parser("explain", help="every path that changes a feature, and which one decides")
    why.add_argument("topic", metavar="TOPIC", help="one of " + ", ".join(TOPICS) + ", or a field or a part of field names")
    _source(why)
    _situation(why)
    why.add_argument("--format", choices=("text", "json"), default="text")
    why.set_defaults(run=run_explain)

    table = commands.add_parser("flags", help="the flag table of a release")
    _source(table)
    table.add_argument("--format", choices=("text", "json"), default="text")
    table.set_defaults(run=run_flags)

    two = commands.add_parser("diff", help="what an upgrade changes")
    two.add_argument("--from", dest="old", required=True, metavar="PATH|WHEEL")
    two.add_argument("--to", dest="new", required=True, metavar="PATH|WHEEL")
    _situation(two)
    two.add_argument("--accept", action="append", default=[], metavar="CODE=REASON", help="let a finding pass, with a reason")
    two.add_argument("--format", choices=("text", "json", "junit", "github"), default="text")
    two.set_defaults(run=run_diff)


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="PATH|WHEEL", help="site-packages, source folder or wheel of SGLang")


def _situation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="CONFIG.json", help="the model's config.json, or the folder that holds it")
    parser.add_argument("--facts", metavar="FACTS.json", help="what is known of the host; absent keys are unknown")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="environment of the server")
    parser.add_argument("argv", nargs="*", metavar="-- ARGV", help="the server's arguments, after --")


def run_check(space: argparse.Namespace) -> int:
    from .check import check  # deferred like the others here: all subcommands of the area are registered at start
    from .live.ask import Interpreter

    expect = {name: _value(value) for name, value in (_pair(text, "--expect") for text in space.expect)}
    known = _known(space)
    live = Interpreter(space.live, known["env"]) if space.live is not None else None
    report = check(space.argv, source_root=space.source, accept=_accept(space), expect=expect, live=live, **known)
    _say(_format(report, space.format))
    if space.format != "text":
        print(report.summary(), file=sys.stderr)
    return report.exit_status


def run_explain(space: argparse.Namespace) -> int:
    from .check import check
    from .explain import explain
    from .flags import read_flags
    from .source import open_source

    tree = open_source(space.source)
    known = _known(space)

    def watched(statements: Any) -> Report:
        return check(space.argv, source_root=tree, watch=statements, **known)

    found = explain(space.topic, tree, read_flags(tree), watched if space.argv else None)
    _say(_json(found.as_dict()) if space.format == "json" else found.text())
    return 0


def run_flags(space: argparse.Namespace) -> int:
    from .flags import read_flags
    from .source import open_source

    table = read_flags(open_source(space.source))
    _say(_json(flags_dict(table)) if space.format == "json" else _flags_text(table))
    return 0


def run_diff(space: argparse.Namespace) -> int:
    from .diff import diff

    found = diff(space.old, space.new, space.argv or None, accept=_accept(space), **_known(space))
    if space.format == "json":
        _say(_json(found.as_dict()))
    else:
        _say({"text": found.text, "junit": found.junit, "github": found.github}[space.format]())
    if space.format != "text":
        print(found.summary(), file=sys.stderr)
    return found.exit_status


def flags_dict(table: FlagTable) -> dict[str, Any]:
    """Return the flag table as JSON can hold it; what the source does not decide is the text ``unknown``."""
    from .flags import UNKNOWN

    names = ("strings", "action", "nargs", "choices", "default", "type", "required", "deprecated", "new_flag", "source")
    flags = []
    for flag in table.flags:
        entry: dict[str, Any] = {"field": table.field_of(flag)}
        for name in names:
            value = getattr(flag, name)
            entry[name] = "unknown" if value is UNKNOWN else jsonable(value)
        flags.append(entry)
    return {"sglang_version": table.version, "source_style": table.style, "flags": flags}


def _flags_text(table: FlagTable) -> str:
    from .flags import UNKNOWN

    lines = [f"SGLang {table.version}: {len(table.flags)} flags ({table.style})"]
    for flag in table.flags:
        takes = "" if flag.action in ("store_true", "boolean_optional") else f" {flag.type or 'value'}{flag.nargs or ''}"
        note = "  deprecated" if flag.deprecated else ""
        default = "unknown" if flag.default is UNKNOWN else flag.default
        lines.append(f"{' '.join(flag.strings)}{takes}  default {default}{note}  [{flag.source}]")
    return "\n".join(lines)


def _format(report: Report, name: str) -> str:
    if name == "json":
        return _json(report.as_dict())
    return {"text": report.text, "junit": report.junit, "github": report.github}[name]()


def _accept(space: argparse.Namespace) -> list[dict[str, str]]:
    return [dict(zip(("code", "reason"), _pair(text, "--accept"), strict=True)) for text in space.accept]


def _known(space: argparse.Namespace) -> dict[str, Any]:
    model = Path(space.model) if space.model else None
    if model is not None and model.is_dir():
        model /= "config.json"
    return {
        "facts": _read(Path(space.facts), "--facts") if space.facts else {},
        "model_config": _read(model, "--model") if model else None,
        "env": dict(_pair(text, "--env") for text in space.env),
    }


def _read(path: Path, option: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise InferopsError(f"{path} cannot be read", where=option, why=str(exc.strerror), do="give a readable file") from exc
    except ValueError as exc:
        raise InferopsError(f"{path} is not JSON", where=option, why=str(exc), do="give a JSON file") from exc
    if not isinstance(value, dict):
        raise InferopsError(f"{path} holds no mapping", where=option, do='write {"key": value, …}')
    return value


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InferopsError(f"{option} {text} has no '='", where=option, do="write NAME=VALUE")
    return name, value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _say(text: str) -> None:
    """Write to standard output; one that is closed or goes nowhere leaves the verdict to the exit status."""
    if sys.stdout is not None:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text + "\n")
