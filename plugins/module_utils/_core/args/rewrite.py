# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A command line of one release written for another, word group by word group, where the meaning stays the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .flags import Flag, FlagTable
from .parser import ArgvError, Use, parse
from .renames import HINTS, WHOLE, Rename, known_renames

Kind = Literal["kept", "renamed", "spelled", "left out", "stuck"]
# Renames of renames: --nsa-prefill, --nsa-prefill-backend, --dsa-prefill-backend. More in a row would be a loop.
_MOST_STEPS = 4


@dataclass(frozen=True)
class Step:
    """One flag of the old command line with its values, and what becomes of it. ``new`` is () where it is left out or stuck.

    problem: what the new release's parser says to the old words, None where it takes them. origin: who says new means old.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    kind: Kind
    position: int
    use: Use
    problem: str | None = None
    reason: str = ""
    origin: str | None = None
    new_field: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What stands for this flag on the new command line."""
        return self.old if self.kind == "kept" else self.new

    def as_dict(self) -> dict[str, Any]:
        return {"from": list(self.old), "to": list(self.new), "kind": self.kind, "reason": self.reason, "origin": self.origin}


@dataclass(frozen=True)
class Rewriting:
    """argv leaves the stuck words out, so that the rest can be checked; whoever shows it lists them beside it."""

    argv: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def stuck(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind == "stuck")

    @property
    def changed(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind not in ("kept", "stuck"))


def rewrite(argv: Sequence[str], old: FlagTable, new: FlagTable) -> Rewriting:
    """Write argv for the new release. Raises ArgvError where the old release does not take it."""
    words = [str(word) for word in argv]
    uses = parse(old, words).uses
    steps: list[Step] = []
    out: list[str] = []
    for position, use, group in _groups(words, uses):
        step = _step(position, use, group, old, new)
        steps.append(step)
        out += step.words
    return Rewriting(tuple(out), tuple(steps))


def _groups(words: Sequence[str], uses: Sequence[Use]) -> Iterator[tuple[int, Use, tuple[str, ...]]]:
    """Divide argv into one group of words per use: the parser notes uses in order, each as it was spelled."""
    starts: list[int] = []
    for index, word in enumerate(words):
        if len(starts) < len(uses) and word.partition("=")[0] == uses[len(starts)].spelled:
            starts.append(index)
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(words)
        yield start, uses[number], tuple(words[start:end])


def _step(position: int, use: Use, group: tuple[str, ...], old: FlagTable, new: FlagTable) -> Step:
    field, problem = _taken(group, use, new)
    target = new.by_string(use.spelled) or new.by_string(use.spelled.replace("--no-", "--", 1))
    renamed_field = field is not None and field != use.field and target is None
    if field is not None and not renamed_field and not (target is not None and target.deprecated):
        return Step(group, group, "kept", position, use, new_field=field)
    full = (old.in_full(use.spelled, use.flag) + group[0][len(use.spelled) :], *group[1:])
    if full != group:  # a short form: what it stands for may still be there
        long_field, dummy = _taken(full, use, new)
        if long_field == use.field:
            why = problem or f"{use.spelled} would mean another flag, {new.spell(field or '')}"
            return Step(group, full, "spelled", position, use, why, f"{use.spelled} stands for {full[0]}", None, long_field)
        if long_field is None and problem is None:
            problem = f"{use.spelled} would mean another flag, {new.spell(field or '')}"
    candidate = _renamed(full, use, old, new)
    if candidate is not None:
        words, rename = candidate
        new_use = None if not words else _use(words, new)
        kind: Kind = "renamed" if words else "left out"
        reason = f"{words[0]} is its name now" if words else "the release works that way by itself"
        if rename.value != WHOLE and words:
            reason = f"{' '.join(words)} says the same"
        return Step(
            group, words, kind, position, use, problem, reason, rename.origin, new_use.field if new_use is not None else None
        )
    if problem is None:  # deprecated with no equal successor: still taken
        return Step(group, group, "kept", position, use, new_field=field)
    return Step(group, (), "stuck", position, use, problem, HINTS.get(full[0].partition("=")[0], ""))


def _taken(words: tuple[str, ...], use: Use, table: FlagTable) -> tuple[str | None, str | None]:
    """Return (field these words set, None), or (None, what the parser stops with)."""
    try:
        found = _use(words, table)
    except ArgvError as stop:
        return None, stop.message
    return (found.field, None) if found is not None else (None, f"unrecognized arguments: {words[0]}")


def _use(words: Sequence[str], table: FlagTable) -> Use | None:
    required = [string for flag in table.flags if flag.required for string in (flag.long, "x")]
    uses = parse(table, [*required, *words]).uses
    return uses[len(required) // 2] if len(uses) > len(required) // 2 else None


def _renamed(words: tuple[str, ...], use: Use, old: FlagTable, new: FlagTable) -> tuple[tuple[str, ...], Rename] | None:
    """Return the words of the new release that mean the same, and who says so; None where nobody does."""
    if use.flag.action == "deprecated":
        return (), Rename(None, f"{use.flag.source} (SGLang {old.version}): taken and ignored")
    for rename in _successors(words[0].partition("=")[0], use.flag, old, new):
        if rename.new is None:
            return (), rename
        written = _write(words, rename)
        found = _takes(written, new)
        if found is not None and not found.flag.deprecated:
            return written, rename
    return None


def _takes(words: tuple[str, ...], table: FlagTable) -> Use | None:
    try:
        return _use(words, table)
    except ArgvError:
        return None


def _successors(name: str, flag: Flag, old: FlagTable, new: FlagTable) -> Iterator[Rename]:
    """Yield what may stand in for a flag: what either release says itself, then other names of the same field, then our table."""
    for table in (new, old):
        told = table.by_string(name)
        if told is not None and told.new_flag and told.deprecated and told.action in _EQUAL:
            yield _told(told, table)
    for other in new.flags:
        if new.field_of(other) == old.field_of(flag) and not other.deprecated and _alike(flag, other):
            yield Rename(new.spell(new.field_of(other)), f"{other.source} (SGLang {new.version}): sets the same field")
    chain = [name]
    for turn in range(_MOST_STEPS):
        yield from known_renames(chain[turn])
        onward = next((known.new for known in known_renames(chain[turn]) if known.new and known.value == WHOLE), None)
        if onward is None or onward in chain:
            return
        chain.append(onward)


# Deprecated actions that store into the new flag's own field; deprecated_true keeps a field of its own in some releases.
_EQUAL = ("deprecated_alias", "deprecated_const", "deprecated_true")


def _told(flag: Flag, table: FlagTable) -> Rename:
    name, equals, value = str(flag.new_flag).partition("=")
    origin = f"{flag.source} (SGLang {table.version}): deprecated in its favour"
    if equals:
        return Rename(name, origin, value)
    return Rename(name, origin, None if flag.action in ("deprecated_true", "deprecated_const") else WHOLE)


def _alike(a: Flag, b: Flag) -> bool:
    return (a.action, a.nargs) == (b.action, b.nargs)


def _write(words: tuple[str, ...], rename: Rename) -> tuple[str, ...]:
    name, equals, inline = words[0].partition("=")
    given = [inline, *words[1:]] if equals else list(words[1:])
    if rename.value is None:
        return (str(rename.new),)
    if rename.value != WHOLE:
        return (str(rename.new), rename.value)
    if rename.values is not None:
        if any(word not in rename.values for word in given):
            return (f"{name} has no equal",)  # parses nowhere, so that it is not taken
        given = [rename.values[word] for word in given]
    if equals and len(given) == 1:
        return (f"{rename.new}={given[0]}",)
    return (str(rename.new), *given)
