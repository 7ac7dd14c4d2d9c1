# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""An explanation for people, within 100 columns: the result first, then one entry per path."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .context import shown
from .paths import CALLED, SERVER_RUNS

if TYPE_CHECKING:
    from .explain import Explanation, Step

WIDTH = 100
# Columns from which on a condition that most paths share has a letter.
LONG = 30
_WORDS = {"yes": "taken", "no": "not taken", "undecided": "undecided"}
_TITLES = {
    CALLED: "",
    SERVER_RUNS: "Written at run time, after the arguments are resolved:",
    "not called": "Called by nothing here:",
}


def explanation_text(found: Explanation) -> str:
    """Return the whole explanation as lines of at most 100 columns, the source's own long words apart."""
    lines = [*_wrap(f"{found.topic} in SGLang {found.version}: {', '.join(found.fields)}", "", "  "), ""]
    if found.report is not None:
        lines += [*_result(found), ""]
    common = _common(found.steps)
    everywhere = set(found.triggers_of(common))
    most = _most(found.steps, common)
    count = sum(step.path.when == CALLED for step in found.steps)
    entries = [list(group) for dummy, group in groupby(found.steps, key=_same)]
    taken = [f"{number}" for number, entry in enumerate(entries, start=1) if entry[0].taken == "yes"]
    them = "it" if len(found.fields) == 1 else "them"
    takes = f"; this command line takes {', '.join(taken)}" if taken else ""
    for guard, letter in most.items():
        lines += _wrap(f"in the conditions below {letter} stands for: {guard}", "", "  ")
    lines += _wrap(f"{count} places set {them} while the arguments are resolved, in this order{takes}:", "")
    if common:
        lines += _wrap("all of them where " + _all_of(common), "")
    for number, entry in enumerate(entries, start=1):
        when = entry[0].path.when
        if when != CALLED and _TITLES[when] not in lines:
            lines += ["", _TITLES[when]]
        lines += _entry(number, entry, common, everywhere, most)
    if not found.steps:
        lines.append("nothing in the argument code of this release sets it")
    return "\n".join(lines)


def _same(step: Step) -> tuple[Any, ...]:
    site = step.path.site
    rel = site.source.rpartition(":")[0]
    return step.path.when, rel, site.function, site.guards, step.taken, step.needs


def _entry(
    number: int, steps: Sequence[Step], common: Sequence[str], everywhere: set[str], most: Mapping[str, str]
) -> Iterator[str]:
    first = steps[0]
    site = first.path.site
    lines = dict.fromkeys(step.path.site.source.rpartition(":")[2] for step in steps)
    places = f"{site.source.rpartition(':')[0]}:{','.join(lines)}"
    verdict = f"{_WORDS[first.taken]}" if first.taken else ""
    if first.needs:
        verdict += f", needs {', '.join(first.needs)}"
    mark = "*" if any(step.decides for step in steps) else " "
    yield from _wrap(f"{number:>3}{mark} {places} {site.function}" + (f"  [{verdict}]" if verdict else ""), "", " " * 7)
    for step in steps:
        decides = "  (decides)" if step.decides else ""
        name = step.path.site.field if step.path.site.field != "*" else "a field named at run time"
        yield from _wrap(f"{name} = {step.path.site.value}{decides}", " " * 7, " " * 9)
    guards = [most.get(guard, guard) for guard in site.guards if guard not in common]
    if first.path.models:
        yield from _wrap(f"for the models {first.path.models}", " " * 7, " " * 9)
    yield from _wrap("when " + (_all_of(guards) or "always"), " " * 7, " " * 9)
    asked = [one for one in first.triggers if one not in everywhere]
    if asked:
        yield from _wrap("asks " + ", ".join(asked), " " * 7, " " * 9)


def _result(found: Explanation) -> Iterator[str]:
    report = found.report
    if report is None:
        return
    yield "result for this command line (* below: the path that decides)"
    if report.message:
        yield from _wrap(f"{report.outcome}: {report.message}", "  ", "    ")
    for name, value in sorted(found.result().items()):
        step = found.decider(name)
        change = report.changed.get(name)
        asked = name in found.asked
        if change is None and not asked and (step is None or step.path.site.field != name):
            continue  # the default of the release, and nothing wrote it
        place = step.path.site.source if step else change["source"] if change else "asked for" if asked else None
        yield from _wrap(f"{name} = {shown(value)}" + (f"  [{place}]" if place else ""), "  ", "    ")
    written = found.result().keys() & report.changed.keys()
    if not written and not found.asked and not found.undecided() and not any(found.decider(name) for name in found.result()):
        yield "  nothing sets it: what was asked for, or the default of the release, stays"
    for entry in found.undecided():
        needs = ", ".join(entry.get("needs") or ["more than the source"])
        yield from _wrap(f"{entry['field']}: not decided; needs {needs}", "  ", "    ")


def _all_of(guards: Sequence[str]) -> str:
    """Return conditions that hold together as one, in brackets where ``and`` would bind what stands beside it."""
    return " and ".join(f"({one})" if len(guards) > 1 and _loose(one) else one for one in guards)


def _loose(guard: str) -> bool:
    try:
        node = ast.parse(guard, mode="eval").body
    except SyntaxError:  # a loop: for phase in …
        return False
    return isinstance(node, ast.IfExp) or (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or))


def _common(steps: Sequence[Step]) -> list[str]:
    """Return the conditions every path of the resolution stands under: said once."""
    guards = [step.path.site.guards for step in steps if step.path.when == CALLED]
    return [guard for guard in guards[0] if all(guard in other for other in guards)] if len(guards) > 1 else []


def _most(steps: Sequence[Step], common: Sequence[str]) -> dict[str, str]:
    """Return a letter for each long condition that more than half of the paths stand under: written out once."""
    count = Counter(guard for step in steps if step.path.when == CALLED for guard in dict.fromkeys(step.path.site.guards))
    half = sum(step.path.when == CALLED for step in steps) / 2
    long = [guard for guard, times in count.items() if guard not in common and len(guard) > LONG and times > max(half, 2)]
    return dict(zip(long, "ABCDEFGH", strict=False))


def _wrap(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
