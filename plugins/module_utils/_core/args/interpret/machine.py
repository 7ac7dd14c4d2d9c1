# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""State with a trail: both arms of an undecided condition run on the same state in turn, and are joined field by field.

Nothing is copied. Every write is noted with the value before it; an arm is undone by walking back, its outcome kept as the writes
it made. So a fork costs what its arms write, not what the state holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..conditions import Words, said
from .values import MISSING, NO_NEEDS, Obj, Origins, Raised, Unknown, join

Delta = dict[tuple[int, Any], tuple[Obj, Any, Any]]
# A path whose end was noted already, on its way out of an expression.
ENDED = "ended"
NORMAL, DEAD = True, False


class Exit:
    """A path that left a block early: where on the trail, which writes belong to it besides, and its value."""

    __slots__ = ("clock", "delta", "needs", "pos", "value")

    def __init__(self, pos: int, value: Any = None) -> None:
        self.pos = pos
        self.delta: Delta = {}
        self.value = value
        self.needs: frozenset[str] = NO_NEEDS
        self.clock = Obj.clock


@dataclass
class Refusal:
    """A refusal on some path, not all."""

    kind: str
    message: str
    source: str
    guard: str
    needs: frozenset[str] = field(default=NO_NEEDS)


def _telling(first: Raised, other: Raised) -> Raised:
    """Return the refusal that stands for both: one we may have made ourselves leaves it open, else the one met last."""
    if ENDED in (first.kind, other.kind):
        return other if first.kind == ENDED else first
    for one in (first, other):
        if one.doubtful:
            return one
    if first.stated != other.stated:
        return first if first.stated else other
    return other if other.step > first.step else first


class Machine:
    """The trail, the exits pending on the way, the refusals seen on some path."""

    def __init__(self) -> None:
        self.trail: list[tuple[Obj, Any, Any]] = []
        self.pending: list[list[Exit]] = []
        self.refusals: list[Refusal] = []
        self.tries: list[list[Exit]] = []  # paths that raised inside the try blocks we are in
        self.doubt: list[frozenset[str]] = []  # what the forks we are inside of depend on

    def write(self, obj: Obj, key: Any, value: Any) -> None:
        cells = obj.cells
        self.trail.append((obj, key, cells.get(key, MISSING)))
        if value is MISSING:
            cells.pop(key, None)
        else:
            cells[key] = value

    def undo(self, mark: int) -> None:
        trail = self.trail
        while len(trail) > mark:
            obj, key, old = trail.pop()
            if old is MISSING:
                obj.cells.pop(key, None)
            else:
                obj.cells[key] = old

    def rewind(self, start: int, clock: int) -> None:
        """Go back to a point for good: paths that left after it keep what they wrote since as their own."""
        late = [one for exits in self.pending for one in exits if one.pos > start]
        for one, delta in zip(late, self.deltas(start, late), strict=True):
            one.delta, one.pos, one.clock = delta, start, min(one.clock, clock)
        self.undo(start)

    def writes(self, start: int) -> Delta:
        """Return the writes since a point of the trail, with the values as of now."""
        out: Delta = {}
        for obj, key, _old in self.trail[start:]:
            ident = (id(obj), key)
            if ident not in out:
                out[ident] = (obj, key, obj.cells.get(key, MISSING))
        return out

    def deltas(self, start: int, exits: Sequence[Exit]) -> list[Delta]:
        """Return for each exit the writes from a point of the trail on to it, as of then, and those that belong to it besides.

        One walk over the trail serves them all: what was written last before an exit is what the next write found there.
        """
        trail = self.trail
        points = sorted({one.pos for one in exits if one.pos > start})
        at: dict[int, Delta] = {}
        if points and points[0] < len(trail):
            later: dict[tuple[int, Any], Any] = {}
            values: list[Any] = []
            for obj, key, old in reversed(trail[start:]):
                ident = (id(obj), key)
                values.append(later[ident] if ident in later else obj.cells.get(key, MISSING))
                later[ident] = old
            values.reverse()
            so_far: Delta = {}
            for begin, end in pairwise([start, *points]):
                for index in range(begin, end):
                    obj, key, _old = trail[index]
                    so_far[id(obj), key] = (obj, key, values[index - start])
                at[end] = dict(so_far)
        elif points:
            at[points[0]] = self.writes(start)
        return [{**at.get(one.pos, {}), **one.delta} for one in exits]

    def meet(self, deltas: list[Delta], needs: frozenset[str], clock: int) -> None:
        """Apply the join of several outcomes to the state they all started from."""
        if len(deltas) == 1:
            for obj, key, value in deltas[0].values():
                self.write(obj, key, value)
            return
        idents: dict[tuple[int, Any], tuple[Obj, Any]] = {}
        for delta in deltas:
            for ident, (obj, key, _value) in delta.items():
                idents.setdefault(ident, (obj, key))
        for ident, (obj, key) in idents.items():
            here = [delta[ident][2] for delta in deltas if ident in delta]
            if obj.birth <= clock and len(here) < len(deltas):
                here.append(obj.cells.get(key, MISSING))
            if isinstance(obj, Origins):
                merged: dict[Any, None] = {}
                for places in here:
                    merged |= dict.fromkeys(places if places is not MISSING else ())
                self.write(obj, key, tuple(merged))
            else:
                self.write(obj, key, here[0] if len(here) == 1 else join(here, needs))

    def fork(self, arms: Sequence[Callable[[], bool]], needs: frozenset[str], guards: Sequence[Words]) -> bool:
        """Run every arm from the state as it is, then continue with the join of those that come through."""
        mark, clock = len(self.trail), Obj.clock
        alive: list[Delta] = []
        first: Raised | None = None
        left_early = False
        held: list[tuple[list[Exit], list[Exit]]] = []
        depth = len(self.pending)
        self.doubt.append(needs)
        try:
            for arm, guard in zip(arms, guards, strict=True):
                counts = [len(exits) for exits in self.pending]
                refused: Raised | None = None
                try:
                    normal = arm()
                except Raised as exc:
                    normal, refused = DEAD, exc.with_traceback(None)  # it would hold this frame, and all below, in a circle
                if refused is not None:
                    del self.pending[depth:]
                    first = refused if first is None else _telling(first, refused)
                    self.doubtful(refused, guard)
                if normal:
                    alive.append(self.writes(mark))
                for exits, count in zip(self.pending, counts, strict=True):
                    fresh = exits[count:]
                    if not fresh:
                        continue
                    left_early = True
                    for one, delta in zip(fresh, self.deltas(mark, fresh), strict=True):
                        one.delta, one.pos, one.clock = delta, mark, clock
                        one.needs |= needs
                    del exits[count:]
                    held.append((exits, fresh))
                self.undo(mark)
        finally:
            self.doubt.pop()
        for exits, fresh in held:
            exits.extend(fresh)
        if not alive:
            if not left_early and first is not None:
                raise first
            return DEAD
        self.meet(alive, needs, clock)
        return NORMAL

    def doubtful(self, refused: Raised, guard: Words) -> None:
        """Note a refusal that happens on some paths only: for the handler around it, else for the report."""
        if refused.kind == ENDED:
            return
        if self.tries:
            exit_ = Exit(len(self.trail), refused)
            self.tries[-1].append(exit_)
        else:
            needs = NO_NEEDS.union(*self.doubt) if self.doubt else NO_NEEDS
            self.refusals.append(Refusal(refused.kind, refused.message, refused.source, said(guard), needs))

    def merge(self, exits: list[Exit]) -> Any:
        """Continue with the join of all the paths that left a block; return the join of their values."""
        if len(exits) == 1:
            only = exits[0]
            if only.pos == len(self.trail) and not only.delta:
                return only.value
            self.rewind(only.pos, only.clock)
            self.meet([only.delta], NO_NEEDS, only.clock)
            return only.value
        start = min(one.pos for one in exits)
        clock = min(one.clock for one in exits)
        needs = NO_NEEDS.union(*(one.needs for one in exits))
        full = self.deltas(start, exits)
        self.rewind(start, clock)
        self.meet(full, needs, clock)
        return join([one.value for one in exits], needs)

    def smear(self, mark: int, needs: frozenset[str]) -> None:
        """Make everything written since the mark unknown: a body that ran an unknown number of times."""
        for obj, key, _value in self.writes(mark).values():
            if not isinstance(obj, Origins):
                self.write(obj, key, Unknown(needs))
