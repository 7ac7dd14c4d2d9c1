# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why a feature is as it is: every path of the release that changes it, and for a command line which are taken, which decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .context import is_secret
from .explain_text import explanation_text
from .flags import FlagTable
from .interpret.visits import Visit
from .paths import CALLED, SERVER_RUNS, Path, find_paths
from .report import Report, jsonable
from .source import SourceTree
from .topics import belongs, topic_fields

TAKEN, NOT_TAKEN, UNDECIDED = "yes", "no", "undecided"
MODEL = "model.architectures"
_PROBES = re.compile(r"\b((?:is|get|has|supports|check)_\w+|use_mla\w*|hf_config|architectures?|model_config)\b")


@dataclass(frozen=True)
class Step:
    """One path and what becomes of it. ``taken``: yes, no or undecided for a command line, None without one, or at run time.

    needs: what would decide it. decides: its value is the one in effect (the last writer). triggers: the flags, as the
    release spells them, and the probes of host or model that its conditions look at; once taken also what the interpretation saw.
    """

    path: Path
    triggers: tuple[str, ...]
    taken: str | None
    needs: tuple[str, ...]
    decides: bool | None

    def as_dict(self) -> dict[str, Any]:
        site = self.path.site
        return {
            "field": site.field,
            "value": site.value,
            "source": site.source,
            "how": site.how,
            "function": site.function,
            "calls": list(self.path.calls),
            "guards": list(site.guards),
            "models": self.path.models,
            "when": self.path.when,
            "triggers": list(self.triggers),
            "taken": self.taken,
            "needs": list(self.needs),
            "decides": self.decides,
        }


@dataclass(frozen=True)
class Explanation:
    """The fields of a topic, the paths that set them in the order the release runs them, and the result for a command line."""

    topic: str
    version: str
    fields: tuple[str, ...]
    steps: tuple[Step, ...]
    report: Report | None
    triggers_of: Callable[[Sequence[str]], tuple[str, ...]]
    asked: tuple[str, ...] = ()
    """Fields that are not as the release has them although nothing there wrote them: the command line did."""

    def as_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "topic": self.topic,
            "sglang_version": self.version,
            "fields": list(self.fields),
            "sites": [step.as_dict() for step in self.steps],
            "outcome": report.outcome if report else None,
            "message": report.message if report else None,
            "result": self.result() if report else None,
            "undecided": [jsonable(entry) for entry in self.undecided()] if report else None,
        }

    def result(self) -> dict[str, Any]:
        """Return what the fields of the topic result in for the command line."""
        values = self.report.effective if self.report else {}
        return {name: jsonable(value) for name, value in values.items() if self._ours(name)}

    def undecided(self) -> list[Any]:
        return [entry for entry in (self.report.undecided if self.report else ()) if self._ours(str(entry["field"]))]

    def decider(self, name: str) -> Step | None:
        """Return the path whose value is the one in effect for a field."""
        found = [step for step in self.steps if step.decides and _covers(step.path.site.field, name)]
        exact = [step for step in found if step.path.site.field == name]
        best = exact or found
        return best[-1] if best else None

    def _ours(self, name: str) -> bool:
        return name.partition(".")[0] in self.fields and belongs(self.topic, name)

    def text(self) -> str:
        return explanation_text(self)


def explain(
    topic: str, tree: SourceTree, table: FlagTable, check: Callable[[Collection[tuple[str, int]]], Report] | None = None
) -> Explanation:
    """Return the paths that change a topic, in order.

    check: runs the check of a command line while it watches the statements given, and returns its report; None without one.
    """
    names = topic_fields(topic, table)
    paths = [path for path in find_paths(tree, names) if belongs(topic, path.site.field)]
    report = check(frozenset(path.site.key for path in paths if path.when != SERVER_RUNS)) if check is not None else None
    last = _last_writers(paths, report) if report else set()
    seen: dict[str, list[Visit]] = {}
    for visit in report.visits if report else ():
        seen.setdefault(visit.source, []).append(visit)
    steps = []
    for path in paths:
        visits = seen.get(path.site.statement, [])
        taken, needs = _taken(path, visits, report)
        decides = None if report is None else path.site.source in last
        if decides:
            taken, needs = TAKEN, ()
        model = (MODEL,) if path.models is not None else ()
        because = sorted(word for visit in visits for word in visit.because if word)
        triggers = tuple(dict.fromkeys((*_triggers(path.site.guards, table), *model, *because)))
        steps.append(Step(path, triggers, taken, needs, decides))
    asked = tuple(name for name in names if report and _asked(name, report, table))
    return Explanation(topic, tree.version, names, tuple(steps), report, lambda guards: _triggers(guards, table), asked)


def _asked(name: str, report: Report, table: FlagTable) -> bool:
    given = name in report.effective and name in table.fields and name not in report.changed
    return given and bool(report.effective[name] != table.fields[name])


def _taken(path: Path, visits: Sequence[Visit], report: Report | None) -> tuple[str | None, tuple[str, ...]]:
    if report is None or path.when == SERVER_RUNS:
        return None, ()
    if any(visit.certain for visit in visits):
        return TAKEN, ()
    if visits:
        return UNDECIDED, tuple(sorted(frozenset().union(*(visit.needs for visit in visits))))
    if report.outcome == "unknown" and not report.effective:
        return UNDECIDED, tuple(sorted({need for entry in report.undecided for need in entry["needs"]}))
    open_model = any(MODEL in entry["needs"] for entry in report.undecided)
    return (UNDECIDED, (MODEL,)) if path.models is not None and open_model else (NOT_TAKEN, ())


def _last_writers(paths: Sequence[Path], report: Report) -> set[str]:
    """Return the places that wrote last, for each field and each nested setting: after them nothing wrote it for certain.

    A place that some paths only come to after the last certain one may be the last writer too; it is not said to decide. Where
    the value is known all the same, since what the other paths leave is refused or the same, the place the resolution names does.
    """
    order: dict[str, int] = {visit.source: index for index, visit in enumerate(report.visits) if visit.certain}
    last: dict[str, tuple[int, str]] = {}
    for path in paths:
        at = order.get(path.site.statement)
        name = path.site.field
        if at is not None and at >= last.get(name, (-1, ""))[0]:
            last[name] = (at, path.site.source)
    told = {str(change["source"]) for name, change in report.changed.items() if name not in last}
    return {source for _at, source in last.values()} | {
        path.site.source for path in paths if {path.site.source, path.site.statement} & told
    }


def _covers(site_field: str, name: str) -> bool:
    return name == site_field or name.startswith(f"{site_field.removesuffix('.*')}.")


def _triggers(guards: Sequence[str], table: FlagTable) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for guard in guards:
        for name in re.findall(r"\.(\w+)|['\"](\w+)['\"]", guard):
            word = name[0] or name[1]
            if word in table.fields and not is_secret(word):
                found[table.spell(word)] = None
        for match in _PROBES.finditer(guard):
            if match[1] not in table.fields:
                found[match[1]] = None
    return tuple(found)


__all__ = ["CALLED", "NOT_TAKEN", "TAKEN", "UNDECIDED", "Explanation", "Step", "explain", "topic_fields"]
