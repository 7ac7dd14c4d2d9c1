# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an upgrade changes: flags gone, new, deprecated, other defaults; with a command line, what it changes for that one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from . import config_file
from .check import check
from .context import is_secret
from .findings import Finding
from .flags import UNKNOWN, FlagTable, read_flags
from .parser import ArgvError
from .report import Report, github, jsonable, junit
from .rewrite import Rewriting, rewrite
from .same_result import Comparison, compare_results
from .source import SourceTree, open_source
from .suggest import suggest
from .upgrade import public_words, upgrade_findings

# By exit status. unknown: a refusal depends on facts that were not given.
VERDICTS = {0: "fine", 1: "breaks", 3: "unknown"}


@dataclass(frozen=True)
class Upgrade:
    """What becomes of one command line. ``after``: as it stands; ``rewritten``: as written for the new release.

    rewriting is None where the old release does not take the command line, comparison where either does not resolve.
    """

    before: Report
    after: Report
    rewritten: Report
    rewriting: Rewriting | None
    comparison: Comparison | None
    findings: tuple[Finding, ...]
    file_words: int = 0

    @property
    def exit_status(self) -> int:
        """Return 1 where it would not start any more or something new blocks, 3 where that cannot be told, else 0."""
        if self.after.outcome in ("parse_error", "fatal") or any(finding.blocks for finding in self.findings):
            return 1
        return 3 if self.rewritten.outcome == "unknown" else 0

    @property
    def argv(self) -> list[str] | None:
        """The command line for the new release, options of its --config file left out, secrets replaced by an ellipsis."""
        if self.rewriting is None:
            return None
        steps = [step for step in self.rewriting.steps if step.position >= self.file_words]
        return [word for step in steps for word in public_words(step, step.words)]

    def as_dict(self) -> dict[str, Any]:
        changed = self.rewriting.changed if self.rewriting is not None else ()
        stuck = self.rewriting.stuck if self.rewriting is not None else ()
        compared = self.comparison
        return {
            "verdict": VERDICTS[self.exit_status],
            "outcome": {"from": self.before.outcome, "to": self.after.outcome, "message": self.after.message},
            "findings": [finding.as_dict() for finding in self.findings],
            "rewritten": {
                "argv": self.argv,
                "outcome": self.rewritten.outcome,
                "message": self.rewritten.message,
                "steps": [step.as_dict() for step in changed if not is_secret(step.use.field)],
                "left_to_you": [step.as_dict() for step in stuck if not is_secret(step.use.field)],
            },
            "effective": {result.field: result.as_dict() for result in compared.different} if compared else {},
            "alike": compared.alike if compared else None,
            "undecided": list(compared.undecided) if compared else [],
        }

    def text(self, new: str) -> list[str]:
        lines = [f"this command line: {self.before.outcome} -> {self.after.outcome}"]
        lines += [finding.text() for finding in self.findings if finding.level != "info"]
        noted = [finding for finding in self.findings if finding.level == "info"]
        lines += [f"{finding.code} {finding.message}" for finding in noted]
        if self.rewriting is not None and (self.rewriting.changed or self.rewriting.stuck):
            without = ", without what is left to you" if self.rewriting.stuck else ""
            lines.append(f"rewritten for SGLang {new}{without}: {self.rewritten.outcome}")
            lines.append(f"  {shlex.join(self.argv or [])}")
            for step in self.rewriting.changed:
                old_words, new_words = (" ".join(public_words(step, words)) for words in (step.old, step.new))
                lines.append(
                    f"  {old_words} -> {new_words or 'left out'}: {step.reason}" + (f" [{step.origin}]" if step.origin else "")
                )
        for step in self.rewriting.stuck if self.rewriting is not None else ():
            lines.append(f"left to you: {' '.join(public_words(step, step.old))}" + (f": {step.reason}" if step.reason else ""))
        if self.comparison is not None:
            compared = self.comparison
            undecided = f", {len(compared.undecided)} not decided" if compared.undecided else ""
            lines.append(f"resolved values: {compared.alike} alike, {len(compared.different)} different{undecided}")
        return lines


@dataclass(frozen=True)
class Difference:
    """The difference between two releases. ``removed`` maps a flag to what takes its place, None where nothing is known."""

    old: str
    new: str
    removed: Mapping[str, str | None]
    added: tuple[str, ...]
    deprecated: Mapping[str, str | None]
    defaults: Mapping[str, tuple[Any, Any]]
    choices: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]]
    upgrade: Upgrade | None = None

    @property
    def exit_status(self) -> int:
        return 0 if self.upgrade is None else self.upgrade.exit_status

    @property
    def breaks(self) -> bool:
        """Whether the given command line would not start any more, or something blocks it that did not before."""
        return self.exit_status == 1

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "from": self.old,
            "to": self.new,
            "removed": dict(self.removed),
            "added": list(self.added),
            "deprecated": dict(self.deprecated),
            "defaults": {name: {"from": jsonable(a), "to": jsonable(b)} for name, (a, b) in self.defaults.items()},
            "choices": {name: {"removed": jsonable(a), "added": jsonable(b)} for name, (a, b) in self.choices.items()},
        }
        return out | (self.upgrade.as_dict() if self.upgrade is not None else {})

    def summary(self) -> str:
        """Return one line: releases and verdict."""
        verdict = VERDICTS[self.exit_status]
        return f"SGLang {self.old} -> {self.new}: {verdict}" if self.upgrade is not None else f"SGLang {self.old} -> {self.new}"

    def text(self) -> str:
        if self.upgrade is not None:
            return "\n".join([f"SGLang {self.old} -> {self.new}", *self.upgrade.text(self.new), self.summary()])
        lines = [f"SGLang {self.old} -> {self.new}"]
        for title, entries in (("removed", self.removed), ("deprecated", self.deprecated)):
            lines.append(f"{title} ({len(entries)})")
            lines += [f"  {name}" + (f"  use {better}" if better else "") for name, better in entries.items()]
        lines.append(f"added ({len(self.added)})")
        lines += [f"  {name}" for name in self.added]
        lines.append(f"other defaults ({len(self.defaults)})")
        lines += [f"  {name}: {_show(a)} -> {_show(b)}" for name, (a, b) in self.defaults.items()]
        lines.append(f"other choices ({len(self.choices)})")
        for name, (gone, new) in self.choices.items():
            words = [f"-{choice}" for choice in gone] + [f"+{choice}" for choice in new]
            lines.append(f"  {name}: {' '.join(words)}")
        return "\n".join(lines)

    def junit(self) -> str:
        return junit(self.upgrade.findings if self.upgrade is not None else (), "diff")

    def github(self) -> str:
        return github(self.upgrade.findings if self.upgrade is not None else (), "diff", self.summary())


def diff(
    old: str | Path | SourceTree,
    new: str | Path | SourceTree,
    argv: Sequence[str] | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    model_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    accept: Sequence[Mapping[str, Any]] = (),
) -> Difference:
    """Compare two releases; with argv, what becomes of that command line. accept is what check takes."""
    trees = _tree(old), _tree(new)
    a, b = (read_flags(tree) for tree in trees)

    def ask(words: Sequence[str], tree: SourceTree) -> Report:
        return check(words, source_root=tree, facts=facts, model_config=model_config, env=env, accept=accept)

    spelled_a, spelled_b = _strings(a), _strings(b)
    new_deprecated = {
        s: f.new_flag for s, f in spelled_b.items() if f.deprecated and s in spelled_a and not spelled_a[s].deprecated
    }
    return Difference(
        a.version,
        b.version,
        {name: suggest(name, b) for name in spelled_a if name not in spelled_b},
        tuple(name for name in spelled_b if name not in spelled_a),
        new_deprecated,
        _defaults(a, b),
        _choices(a, b),
        None if argv is None else _upgrade([str(word) for word in argv], trees, (a, b), ask),
    )


def _tree(source: str | Path | SourceTree) -> SourceTree:
    return source if isinstance(source, SourceTree) else open_source(source)


def _upgrade(
    words: list[str],
    trees: tuple[SourceTree, SourceTree],
    tables: tuple[FlagTable, FlagTable],
    ask: Callable[[Sequence[str], SourceTree], Report],
) -> Upgrade:
    (old, new), (a, b) = trees, tables
    before, after = ask(words, old), ask(words, new)
    rewriting, rewritten, file_words = None, after, 0
    if before.outcome != "parse_error":
        merged, file_words = _with_config(a, words)
        try:
            rewriting = rewrite(merged, a, b)
        except ArgvError:  # a --config file that cannot be read is not an error of the check
            file_words = 0
        if rewriting is not None and (rewriting.changed or rewriting.stuck):
            rewritten = ask(rewriting.argv, new)
    comparison = None
    if before.effective and rewritten.effective:
        named = {step.use.field: step.new_field for step in rewriting.steps} if rewriting is not None else {}
        comparison = compare_results(before, rewritten, a, b, named)
    found = upgrade_findings(a, b, before, rewritten, rewriting, comparison, file_words)
    return Upgrade(before, after, rewritten, rewriting, comparison, tuple(found), file_words)


def _with_config(table: FlagTable, words: list[str]) -> tuple[list[str], int]:
    """Return the words with those of a --config file first, and how many came from it."""
    try:
        merged = config_file.merge(table, words)
    except (ArgvError, InferopsError, OSError, UnicodeDecodeError):
        return words, 0
    return merged, len(merged) - len(words) + 2 if merged != words else 0


def _strings(table: FlagTable) -> dict[str, Any]:
    return {string: flag for flag in table.flags for string in flag.strings}


def _defaults(a: FlagTable, b: FlagTable) -> dict[str, tuple[Any, Any]]:
    both = [name for name in a.fields if name in b.fields and not is_secret(name)]
    pairs = {name: (a.fields[name], b.fields[name]) for name in both}
    return {name: (x, y) for name, (x, y) in pairs.items() if x is not UNKNOWN and y is not UNKNOWN and x != y}


def _choices(a: FlagTable, b: FlagTable) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    out = {}
    for flag in b.flags:
        other = a.by_string(flag.strings[0])
        if other is None or not isinstance(flag.choices, tuple) or not isinstance(other.choices, tuple):
            continue
        gone = tuple(choice for choice in other.choices if choice not in flag.choices)
        new = tuple(choice for choice in flag.choices if choice not in other.choices)
        if gone or new:
            out[flag.strings[0]] = (gone, new)
    return out


def _show(value: Any) -> str:
    return "none" if value is None else str(jsonable(value))
