# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an upgrade changes: flags gone, new, deprecated, other defaults; with a command line, what it changes for that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .check import check
from .context import is_secret
from .flags import UNKNOWN, FlagTable, read_flags
from .report import Report, jsonable
from .source import open_source
from .suggest import suggest


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
    before: Report | None = None
    after: Report | None = None
    effective: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def breaks(self) -> bool:
        """Whether the given command line, good before, is refused after."""
        return self.after is not None and self.after.outcome in ("parse_error", "fatal")

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
        if self.before is not None and self.after is not None:
            out["outcome"] = {"from": self.before.outcome, "to": self.after.outcome, "message": self.after.message}
            out["effective"] = {name: {"from": jsonable(a), "to": jsonable(b)} for name, (a, b) in self.effective.items()}
            out["findings"] = [finding.as_dict() for finding in self.after.findings]
        return out

    def text(self) -> str:
        lines = [f"SGLang {self.old} -> {self.new}"]
        if self.before is not None and self.after is not None:
            lines.append(f"this command line: {self.before.outcome} -> {self.after.outcome}")
            lines += [f"  {name}: {_show(a)} -> {_show(b)}" for name, (a, b) in self.effective.items()]
            lines += [finding.text() for finding in self.after.findings if finding.level != "info"]
            return "\n".join(lines)
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


def diff(
    old: str | Path,
    new: str | Path,
    argv: Sequence[str] | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    model_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Difference:
    """Compare two releases; with argv, what becomes of that command line."""
    trees = open_source(old), open_source(new)
    a, b = (read_flags(tree) for tree in trees)
    reports: tuple[Report | None, Report | None] = (None, None)
    changes: dict[str, tuple[Any, Any]] = {}
    if argv is not None:
        before, after = (check(argv, source_root=tree, facts=facts, model_config=model_config, env=env) for tree in trees)
        reports = before, after
        changes = _effective(before, after, a, b)
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
        *reports,
        changes,
    )


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


def _effective(before: Report, after: Report, a: FlagTable, b: FlagTable) -> dict[str, tuple[Any, Any]]:
    """Return fields both releases have, decided in both, whose resolved values differ."""
    names = [name for name in before.effective if name in after.effective]
    both = [name for name in names if name.partition(".")[0] in a.fields and name.partition(".")[0] in b.fields]
    return {
        name: (before.effective[name], after.effective[name]) for name in both if before.effective[name] != after.effective[name]
    }


def _show(value: Any) -> str:
    return "none" if value is None else str(jsonable(value))
