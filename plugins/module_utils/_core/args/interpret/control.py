# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Loops and exceptions: known items unroll, an unknown number of turns opens what they write, paths that raised are handled."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ..conditions import text_of
from .expressions import Expressions
from .frames import Frame
from .machine import DEAD, ENDED, NORMAL, Exit
from .operators import truth
from .values import MISSING, Instance, List, Raised, Unknown, needs_of

MAX_LOOP = 20_000
MAX_BREAKS = 4
MAX_ALTERNATIVES = 4


def _sets_constants(node: ast.stmt) -> bool:
    """Whether a statement is ``name = constant`` or ``name.field = constant``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
        return False
    return all(isinstance(one.value if isinstance(one, ast.Attribute) else one, ast.Name) for one in node.targets)


class Control(Expressions):
    """``for``, ``while``, ``try``."""

    def _exec_For(self, node: ast.For, frame: Frame) -> bool:
        value = self.eval(node.iter, frame)
        items = self.iterate(value)
        if items is None and (several := self._alternatives(value)):
            taint = self._taint(frame)
            arms = [partial(self._for_items, node, one, frame, taint) for one in several]
            return self.fork(
                arms,
                needs_of(value, value.items if isinstance(value, List) else None),
                [f"items of {text_of(node.iter)}"] * len(arms),
            )
        if items is None or len(items) > MAX_LOOP:
            return self._unknown_loop(node, needs_of(value) or frozenset({f"items of {text_of(node.iter)}"}), frame)
        return self._for_items(node, items, frame, self._taint(frame))

    def _alternatives(self, value: Any) -> list[list[Any]] | None:
        """Return the few lists of items an iterable can be, None where that is open."""
        several = value.items if isinstance(value, List) else value
        if not isinstance(several, Unknown) or not several.options or len(several.options) > MAX_ALTERNATIVES:
            return None
        lists = [self.iterate(one) for one in several.options if one is not MISSING and one is not None]
        return None if any(one is None for one in lists) else lists  # type: ignore[return-value]

    def _for_items(self, node: ast.For, items: list[Any], frame: Frame, taint: frozenset[str]) -> bool:
        def step(item: Any) -> bool:
            self.assign(node.target, item, frame, taint)
            return NORMAL

        return self._loop(node, ((lambda item=item: step(item)) for item in items), frame)

    def _loop(self, node: Any, steps: Any, frame: Frame) -> bool:
        breaks: list[Exit] = []
        self.pending.append(breaks)
        flow = NORMAL
        try:
            for step in steps:
                self.tick()
                go_on = step()
                if not go_on:
                    break
                flow = self._iteration(node, breaks, frame)
                if not flow:
                    break
        except Raised as exc:
            if not breaks:
                raise
            self.doubtful_after(exc, breaks)
            flow = DEAD
        finally:
            self.pending[:] = [exits for exits in self.pending if exits is not breaks]
        if flow and node.orelse:
            flow = self.block(node.orelse, frame)
        if not breaks:
            return flow
        if flow:
            breaks.append(Exit(len(self.trail)))
        self.merge(breaks)
        return NORMAL

    def _iteration(self, node: Any, breaks: list[Exit], frame: Frame) -> bool:
        continues: list[Exit] = []
        self.pending.append(continues)
        frame.loops.append((breaks, continues))
        try:
            flow = self.block(node.body, frame)
        except Raised as exc:
            if not continues:
                raise
            self.doubtful_after(exc, continues)
            flow = DEAD
        finally:
            frame.loops.pop()
            self.pending[:] = [exits for exits in self.pending if exits is not continues]
        if continues:
            if flow:
                continues.append(Exit(len(self.trail)))
            self.merge(continues)
            return NORMAL
        return flow

    def doubtful_after(self, exc: Raised, exits: list[Exit]) -> None:
        """A raise behind an exit some paths took: it happens on the others only."""
        needs = frozenset().union(*(one.needs for one in exits))
        self.doubt.append(needs)
        try:
            self.doubtful(exc, "")
        finally:
            self.doubt.pop()

    def _unknown_loop(self, node: Any, needs: frozenset[str], frame: Frame) -> bool:
        """A body that runs an unknown number of times: what it writes is unknown afterwards."""

        def once() -> bool:
            mark = len(self.trail)
            if isinstance(node, ast.For):
                self.assign(node.target, Unknown(needs), frame, frozenset())
            breaks: list[Exit] = []
            self.pending.append(breaks)
            try:
                flow = self._iteration(node, breaks, frame)
            finally:
                self.pending[:] = [exits for exits in self.pending if exits is not breaks]
            if breaks:
                if flow:
                    breaks.append(Exit(len(self.trail)))
                self.merge(breaks)
                flow = NORMAL
            self.smear(mark, needs)
            return flow

        return self.fork([lambda: NORMAL, once], needs, ["no item", f"items of {type(node).__name__} at line {node.lineno}"])

    def _exec_While(self, node: ast.While, frame: Frame) -> bool:
        first = truth(self.eval(node.test, frame))
        if isinstance(first, Unknown):
            return self._unknown_loop(node, first.needs, frame)

        mark, needs = len(self.trail), frozenset({f"loop at {frame.module.rel}:{node.lineno}"})
        given_up: list[bool] = []

        def steps() -> Any:
            mine = self.pending[-1]
            for dummy in range(MAX_LOOP):
                outcome = truth(self.eval(node.test, frame))
                if outcome is False:
                    return
                if isinstance(outcome, Unknown) or len(mine) > MAX_BREAKS:
                    given_up.append(True)
                    return
                yield lambda: NORMAL

        flow = self._loop(node, steps(), frame)
        if given_up and flow:
            self.smear(mark, needs)
        return flow

    def _exec_Break(self, node: ast.Break, frame: Frame) -> bool:
        frame.loops[-1][0].append(Exit(len(self.trail)))
        return DEAD

    def _exec_Continue(self, node: ast.Continue, frame: Frame) -> bool:
        frame.loops[-1][1].append(Exit(len(self.trail)))
        return DEAD

    def _exec_Try(self, node: ast.Try, frame: Frame) -> bool:
        raised: list[Exit] = []
        certain: Raised | None = None
        guarded = any("Import" in text_of(one.type) or "ModuleNotFound" in text_of(one.type) for one in node.handlers if one.type)
        self.import_guards += [frame] * guarded
        self.pending.append(raised)
        self.tries.append(raised)
        try:
            flow = self.block(node.body, frame)
        except Raised as exc:
            certain, flow = (None if exc.kind == ENDED and raised else exc.with_traceback(None)), DEAD
        finally:
            self.tries.pop()
            del self.import_guards[len(self.import_guards) - guarded :]
            self.pending[:] = [exits for exits in self.pending if exits is not raised]
        if flow and node.orelse:
            flow = self.block(node.orelse, frame)
        if certain is not None and not raised:
            flow = self._handle(node, certain, frame)
        elif raised:
            flow = self._handle_some(node, raised, certain, frame, flow=flow)
        if node.finalbody and flow:
            return self.block(node.finalbody, frame)
        return flow

    def _handle_some(self, node: ast.Try, raised: list[Exit], certain: Raised | None, frame: Frame, *, flow: bool) -> bool:
        """Some paths raised: each goes through its handler, then all meet."""
        exits = list(raised)
        if certain is not None:
            exits.append(Exit(len(self.trail), certain))
        if flow:
            exits.append(Exit(len(self.trail), None))
        start, clock = min(one.pos for one in exits), min(one.clock for one in exits)
        needs = frozenset().union(*(one.needs for one in exits))
        deltas = self.deltas(start, exits)
        self.rewind(start, clock)

        def arm(index: int) -> bool:
            value = exits[index].value
            if value is None or not self._passes_on(node, value):
                self.meet([deltas[index]], needs, clock)
            return NORMAL if value is None else self._handle(node, value, frame)

        return self.fork([partial(arm, index) for index in range(len(exits))], needs, ["try"] * len(exits))

    def _handle(self, node: ast.Try, exc: Raised, frame: Frame) -> bool:
        handler = self._handler(node, exc)
        if handler is None:
            raise exc
        self.handling.append(exc)
        try:
            if handler.name:
                self.write(frame, handler.name, Instance(None, {"_raised_": exc, "args": (exc.message,)}))
            return self.block(handler.body, frame)
        finally:
            self.handling.pop()

    def _handler(self, node: ast.Try, exc: Raised) -> ast.ExceptHandler | None:
        return next((one for one in node.handlers if one.type is None or self._catches(one.type, exc)), None)

    def _passes_on(self, node: ast.Try, exc: Raised) -> bool:
        """Whether what is raised leaves the statement whatever the state is: then a path need not be put together for it.

        resolve_once of 0.5.19 on is one such statement around all of the resolution, which a hundred refusals may leave.
        """
        handler = self._handler(node, exc)
        if handler is None:
            return True
        *before, last = handler.body
        return isinstance(last, ast.Raise) and last.exc is None and all(_sets_constants(one) for one in before)

    def _catches(self, node: ast.expr, exc: Raised) -> bool:
        names = [text_of(one).rpartition(".")[2] for one in (node.elts if isinstance(node, ast.Tuple) else [node])]
        return self.is_exception(exc.kind, names)
