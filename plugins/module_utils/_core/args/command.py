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
from .answers import SWITCH, Answers, default_answers
from .kept import check_kept, kept, may_be_kept
from .report import Report, jsonable
from .topics import TOPICS

if TYPE_CHECKING:
    from .flags import FlagTable
    from .kept import Texts
    from .source import SourceTree


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
    _output(one, "text", "json", "junit", "github")
    one.set_defaults(run=run_check)

    why = commands.add_parser("explain", help="every path that changes a feature, and which one decides")
    why.add_argument("topic", metavar="TOPIC", help="one of " + ", ".join(TOPICS) + ", or a field or a part of field names")
    _source(why)
    _situation(why)
    _output(why, "text", "json")
    why.set_defaults(run=run_explain)

    table = commands.add_parser("flags", help="the flag table of a release")
    _source(table)
    _output(table, "text", "json")
    table.set_defaults(run=run_flags)

    two = commands.add_parser("diff", help="what an upgrade changes")
    two.add_argument("--from", dest="old", required=True, metavar="PATH|WHEEL")
    two.add_argument("--to", dest="new", required=True, metavar="PATH|WHEEL")
    _situation(two)
    two.add_argument("--accept", action="append", default=[], metavar="CODE=REASON", help="let a finding pass, with a reason")
    _output(two, "text", "json", "junit", "github")
    two.set_defaults(run=run_diff)


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="PATH|WHEEL", help="site-packages, source folder or wheel of SGLang")


def _output(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("--format", choices=formats, default="text")
    parser.add_argument("--no-cache", action="store_true", help=f"work the answer out anew and keep none, as {SWITCH}=off does")


def _situation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="CONFIG.json", help="the model's config.json, or the folder that holds it")
    parser.add_argument("--facts", metavar="FACTS.json", help="what is known of the host; absent keys are unknown")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="environment of the server")
    parser.add_argument("argv", nargs="*", metavar="-- ARGV", help="the server's arguments, after --")


def run_check(space: argparse.Namespace) -> int:
    expect = {name: _value(value) for name, value in (_pair(text, "--expect") for text in space.expect)}
    known, accept = _known(space), _accept(space)
    if space.live is not None:
        from .check import check  # deferred like the others here: an answer that was kept needs none of it
        from .live.ask import Interpreter

        live = Interpreter(space.live, known["env"])
        report = check(space.argv, source_root=space.source, accept=accept, expect=expect, live=live, **known)
    else:
        asked = {"argv": space.argv, "accept": accept, "expect": expect, **known}
        report = check_kept(_answers(space), space.source, asked)
    _say(_format(report, space.format))
    if space.format != "text":
        print(report.summary(), file=sys.stderr)
    return report.exit_status


def run_explain(space: argparse.Namespace) -> int:
    known = _known(space)

    def make(trees: list[SourceTree], read: Texts) -> tuple[dict[str, Any], bool]:
        from .check import check
        from .explain import explain
        from .flags import read_flags

        def watched(statements: Any) -> Report:
            return check(space.argv, source_root=trees[0], watch=statements, read_text=read, **known)

        table = read_flags(trees[0])
        found = explain(space.topic, trees[0], table, watched if space.argv else None)
        lasting = may_be_kept([table], space.argv, known["env"], read, found.report.undecided if found.report else ())
        return {"out": _json(found.as_dict()) if space.format == "json" else found.text()}, lasting

    asked = {"what": "explain", "topic": space.topic, "format": space.format, "argv": space.argv, **known}
    _say(kept(_answers(space), asked, [space.source], make)["out"])
    return 0


def run_flags(space: argparse.Namespace) -> int:
    def make(trees: list[SourceTree], dummy: Texts) -> tuple[dict[str, Any], bool]:
        from .flags import read_flags

        table = read_flags(trees[0])
        return {"out": _json(flags_dict(table)) if space.format == "json" else _flags_text(table)}, True

    _say(kept(_answers(space), {"what": "flags", "format": space.format}, [space.source], make)["out"])
    return 0


def run_diff(space: argparse.Namespace) -> int:
    known, accept = _known(space), _accept(space)

    def make(trees: list[SourceTree], read: Texts) -> tuple[dict[str, Any], bool]:
        from .diff import diff
        from .flags import read_flags

        found = diff(trees[0], trees[1], space.argv or None, accept=accept, **known)
        if space.format == "json":
            written = _json(found.as_dict())
        else:
            written = {"text": found.text, "junit": found.junit, "github": found.github}[space.format]()
        out = {"out": written, "err": found.summary(), "status": found.exit_status}
        reports = (found.upgrade.before, found.upgrade.after, found.upgrade.rewritten) if found.upgrade else ()
        undecided = [entry for report in reports for entry in report.undecided]
        return out, may_be_kept([read_flags(tree) for tree in trees], space.argv, known["env"], read, undecided)

    asked = {"what": "diff", "format": space.format, "argv": space.argv, "accept": accept, **known}
    found = kept(_answers(space), asked, [space.old, space.new], make)
    _say(found["out"])
    if space.format != "text":
        print(found["err"], file=sys.stderr)
    return int(found["status"])


def _answers(space: argparse.Namespace) -> Answers | None:
    return None if space.no_cache else default_answers()


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
