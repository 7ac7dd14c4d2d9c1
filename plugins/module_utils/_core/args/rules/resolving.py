# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the release makes of the arguments: refusals, changed values, what stays undecided."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from ..context import Context, shown
from ..facts import Facts
from ..findings import Finding
from ..late import ANY, late_writers
from ..topics import TOPICS

# Settings of which each place that sets them again is named: what the topics of explain are about, and the pipeline.
KEY = re.compile("|".join([*TOPICS.values(), "^pp_"]))
PLACES = 2
ASSERT_LINES = 12
# How the interpretation names what is not known of a checkpoint other than the model: a draft.
OTHER = "model of "


def refused(ctx: Context) -> Iterator[Finding]:
    """Report that the release stops after parsing, or that it may."""
    res = ctx.resolution
    if res.outcome == "fatal":
        yield Finding(
            "SGA201",
            "error",
            f"SGLang {ctx.table.version} refuses this command line: {res.message}",
            why=f"it stops while resolving its arguments, before the model is loaded{_condition(ctx, res.source)}",
            do="change what the message names",
            source=res.source,
        )
    elif res.outcome == "unknown":
        deciding = [entry for entry in res.doubts if entry["source"] == res.source] or res.undecided
        needs = sorted({need for entry in deciding for need in entry.get("needs", ())})
        yield Finding(
            "SGA202",
            "unknown",
            f"whether SGLang {ctx.table.version} refuses this command line is not decided"
            + (f": it may stop with: {res.message}" if res.message else ""),
            why="the refusal depends on what was not given" + (f" ({', '.join(needs)})" if needs else ""),
            do=_draft(needs) or "give the facts of the host and the model's config.json",
            source=res.source,
        )


def _condition(ctx: Context, source: str | None) -> str:
    """Return the line itself where it says more than the message: a bare assert, or a comparison that failed by accident."""
    rel, dummy, number = (source or "").rpartition(":")
    lines = (ctx.tree.read(rel) or "").splitlines() if rel else []
    at = int(number) - 1 if number.isdigit() and int(number) <= len(lines) else len(lines)
    line = " ".join((lines[at : at + 1] or [""])[0].split())
    if line.startswith("assert"):
        line = _statement(lines, at)
    return f"; the line is: {line}" if line and not line.startswith("raise") and not line.endswith("(") else ""


def _statement(lines: list[str], at: int) -> str:
    """Return the statement that begins in a line, on one line; what is longer than ASSERT_LINES is cut.

    >>> _statement(["assert (", "    a", "    and b", ")", "c = 1"], 0)
    'assert (a and b)'
    """
    text = ""
    for line in lines[at : at + ASSERT_LINES]:
        text += " " * bool(text) + " ".join(line.split())
        if all(text.count(opening) <= text.count(closing) for opening, closing in ("()", "[]", "{}")):
            break
    return re.sub(r"(?<=[(\[{]) | (?=[)\]}])", "", text)


def overrides(ctx: Context) -> Iterator[Finding]:
    """Report each value asked for, or given as a plain default, that the release replaces by another.

    Filling in a default that was left open (None, auto) is not an override; `changed` in the report lists those too.
    """
    for name, change in ctx.resolution.changed.items():
        explicit = name in ctx.parsed.explicit
        if not explicit and (change["from"] is None or change["from"] == "auto"):
            continue
        because = [word for word in change.get("because") or [] if word]
        spelled = ctx.spelled(name) if explicit else None
        guard = change.get("guard")
        reason = f"because of {', '.join(because)}" if because else (f"where {guard}" if guard else "for every command line")
        yield Finding(
            "SGA210",
            "override",
            f"SGLang changes {name} from {shown(change['from'])} to {shown(change['to'])} {reason}",
            why=f"condition: {guard}" if guard and because else None,
            # A value that led to its own replacement says something else as well: neither word of this advice would be safe.
            do=f"write {shown(change['to'])} or remove {spelled}" if explicit and spelled not in because else None,
            source=change.get("source"),
            **ctx.at(spelled),
        )


def undecided(ctx: Context) -> Iterator[Finding]:
    """Report what cannot be decided, one finding per set of things that would decide it."""
    groups: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for entry in ctx.resolution.undecided:
        groups.setdefault(tuple(sorted(entry.get("needs") or ())), []).append(entry)
    for needs, entries in sorted(groups.items()):
        names = sorted({str(entry["field"]) for entry in entries})
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        first = next((str(entry["source"]) for entry in entries if entry.get("source")), None)
        yield Finding(
            "SGA211",
            "unknown",
            f"not decided: {listed}",
            why=f"depends on {', '.join(needs)}" if needs else "depends on what the source alone does not tell",
            do=_what_to_give(needs),
            source=first,
        )


def late(ctx: Context) -> Iterator[Finding]:
    """Say what the running server may set again after the arguments are resolved: no argument check can tell whether it does."""
    found = late_writers(ctx.tree) if ctx.resolution.outcome != "fatal" else {}
    names = [name for name in found if name in ctx.table.fields]
    key = [name for name in names if KEY.search(name)]
    other = [name for name in names if name not in key]
    if not names:
        return
    counted = f"{len(other)} other settings" if key else f"{len(other)} settings"
    by_name = [f"any by its name, by {_places(found[ANY])}"] if ANY in found else []
    yield Finding(
        "SGA212",
        "info",
        f"the running server may also change {', '.join([*key, *([counted] if other else [])])}",
        why="; ".join([*(f"{name} by {_places(found[name])}" for name in key), *by_name])
        + (f". The others: {', '.join(other)}" if other else ""),
        do="look up the conditions with inferops explain; the proof after start compares what runs with what was asked",
        source=found[[*key, *other][0]][0],
    )


def _places(places: tuple[str, ...]) -> str:
    return ", ".join(places[:PLACES]) + (f" and {len(places) - PLACES} more" if len(places) > PLACES else "")


def _what_to_give(needs: tuple[str, ...]) -> str:
    known = {field.name for field in dataclasses.fields(Facts)}
    # platform.machine() and the like are asked of Python, not told.
    facts = [need for need in needs if need.partition(".")[0] in known and not need.endswith("()")]
    parts = [f"give the facts {', '.join(facts)}"] if facts else []
    parts += ["give the model's config.json"] if any(need.startswith("model") and OTHER not in need for need in needs) else []
    parts += [_draft(needs)] if _draft(needs) else []
    return " and ".join(parts) or "nothing to give here; the proof after start shows the value"


def _draft(needs: Iterable[str]) -> str:
    """Return what to do about another checkpoint that could not be read; empty where there is none."""
    paths = [need.removeprefix(OTHER) for need in needs if need.startswith(OTHER)]
    return f"run the check where {paths[0]}/config.json can be read" if paths else ""
