# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two tiers, one report: what SGLang itself answered counts, and where our reading of the source says otherwise is a finding."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InferopsError
from ..conditions import negated
from ..context import is_secret, shown
from ..findings import Finding
from ..interpret.outcome import same_json
from ..interpret.resolve import Resolution
from ..source import SourceTree
from .ask import Answer

LISTED = 6
DECIDED = ("ok", "fatal", "parse_error")


def resolution(answer: Answer, tree: SourceTree, static: Resolution | None = None) -> Resolution:
    """Return an answer in the shape of the static tier's; where both saw the same change, with the condition static found."""
    known = static.changed if static is not None else {}
    changed = {}
    for path, value in answer.effective.items():
        asked = answer.asked.get(path)
        if same_json(asked, value):
            continue
        writes = answer.writes.get(path, ())
        read = known.get(path)
        same = read is not None and same_json(read["to"], value)
        source = writes[-1]["source"] if writes else (read["source"] if read is not None and same else None)
        changed[path] = {
            "from": asked,
            "to": value,
            "source": source,
            "guard": read["guard"] if read is not None and same else condition_at(tree, source),
            "because": list(read["because"]) if read is not None and same else [],
        }
        if len(writes) > 1:
            changed[path]["writes"] = [{"to": one["to"], "source": one["source"]} for one in writes]
    unseen = tuple(
        {"field": path, "to": None, "source": None, "guard": None, "needs": ["a value that is plain data"]}
        for path in answer.unseen
    )
    return Resolution(answer.outcome, answer.message, answer.source, dict(answer.effective), changed, unseen)


def condition_at(tree: SourceTree, source: str | None) -> str | None:
    """Return the innermost condition around a line, ``always`` where none stands there, None where the line is not known."""
    rel, dummy, number = (source or "").rpartition(":")
    module = tree.module(rel) if rel else None
    if module is None or not number.isdigit():
        return None
    line, found = int(number), "always"
    for node in ast.walk(module):  # outer before inner
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            found = "always"
        elif isinstance(node, ast.If):
            if _holds(node.body, line):
                found = ast.unparse(node.test)
            elif _holds(node.orelse, line):
                found = negated(node.test)
    return found


def _holds(body: list[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def usable(answer: Answer, tree: SourceTree) -> Answer:
    """Return the answer, or why it does not count: it came from another release than the source that was read."""
    if answer.outcome == "unavailable" or tree.version in (answer.version, "unknown"):
        return answer
    why = f"the interpreter has SGLang {answer.version}, the source that was read is {tree.version}"
    return Answer("unavailable", why, seconds=answer.seconds)


def not_asked(answer: Answer, python: str, *, alone: bool) -> Finding:
    """Say that SGLang itself could not be asked."""
    return Finding(
        "SGA702",
        "unknown" if alone else "info",
        f"SGLang itself could not be asked: {' '.join((answer.message or '').split())}",
        where=python,
        why="and the source of this release cannot be read here" if alone else None,
        do="give the interpreter of a complete installation of this release"
        if alone
        else "nothing has to be done; what stands here was read from the source",
    )


def alone(answer: Answer, tree: SourceTree, unread: InferopsError) -> Iterator[Finding]:
    """Say what the live tier answered by itself."""
    yield Finding(
        "SGA703",
        "info",
        f"SGLang {tree.version} is answered by the live tier alone: its source cannot be read here",
        where=unread.where,
        why=f"{unread.what}; so nothing confirms the answer, and what depends on reading the source is not judged",
        do="use an inferops that reads this release, once there is one",
    )
    yield from stopped(answer, tree)
    for path, change in resolution(answer, tree).changed.items():
        if change["from"] is None or change["from"] == "auto":
            continue
        yield Finding(
            "SGA210",
            "override",
            f"SGLang changes {path} from {shown(change['from'])} to {shown(change['to'])}",
            why=f"condition: {change['guard']}" if change["guard"] else None,
            source=change["source"],
        )


def stopped(answer: Answer, tree: SourceTree) -> Iterator[Finding]:
    """Say that SGLang itself refused, for reports that have no other rule to say it."""
    if answer.outcome == "parse_error":
        message = f"SGLang {tree.version} stops at parsing: {answer.message}"
        yield Finding("SGA105", "error", message, do="correct what the message names")
    elif answer.outcome == "fatal":
        message = f"SGLang {tree.version} refuses this command line: {answer.message}"
        yield Finding("SGA201", "error", message, do="change what the message names", source=answer.source)


def disagreements(answer: Answer, outcome: str, message: str | None, static: Resolution | None) -> Iterator[Finding]:
    """Report where reading the source led to another result than asking SGLang. What SGLang answered counts."""
    why = "the facts given do not describe this machine, or the source was read wrongly; the answer of SGLang itself counts"
    if outcome in DECIDED and outcome != answer.outcome:
        yield Finding(
            "SGA701",
            "info",
            f"reading the source says {_said(outcome, message)}, SGLang itself says {_said(answer.outcome, answer.message)}",
            why=why,
            do="compare the facts with the host; if they are right, report it with both texts",
            source=answer.source or (static.source if static is not None else None),
        )
        return
    wrong = dict(_differing(static.effective, answer.effective)) if static is not None and answer.outcome == "ok" else {}
    if wrong:
        listed = "; ".join(f"{path}: read {shown(a)}, is {shown(b)}" for path, (a, b) in list(wrong.items())[:LISTED])
        more = f"; and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
        first = answer.writes.get(next(iter(wrong), ""), ())
        yield Finding(
            "SGA701",
            "info",
            f"reading the source and asking SGLang itself disagree on {len(wrong)} of the fields: {listed}{more}",
            why=why,
            do="compare the facts with the host; if they are right, report it with both values",
            source=first[-1]["source"] if first else None,
        )


def _differing(read: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for path, value in read.items():
        if path in live and not is_secret(path) and not same_json(value, live[path]):
            yield path, (value, live[path])


def _said(outcome: str, message: str | None) -> str:
    return f"{outcome} ({message})" if message else outcome
