# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Execute statements of the source: branches on undecided conditions fork, loops over known items unroll, raise ends a path."""

from __future__ import annotations

import ast
from typing import Any

from .expressions import Expressions
from .frames import Frame, Guard, text_of
from .machine import DEAD, ENDED, NORMAL, Exit
from .operators import arithmetic, truth
from .values import MISSING, SMEARED, Class, Dict, External, Function, Instance, List, Module, Raised, Set, Unknown, join, needs_of

MAX_LOOP = 20_000
MAX_BREAKS = 4
MAX_ALTERNATIVES = 4
_LEAVES = (ast.Return, ast.Continue)


class Statements(Expressions):
    """``block`` and one method per kind of statement; each says whether the path goes on."""

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        depth = len(frame.guards)
        try:
            for statement in body:
                if not self.statement(statement, frame):
                    return DEAD
        finally:
            del frame.guards[depth:]
        return NORMAL

    def statement(self, node: ast.stmt, frame: Frame) -> bool:
        self.tick()
        frame.line = node.lineno
        method = getattr(self, "_exec_" + type(node).__name__, None)
        if method is None:
            return NORMAL
        saved, self.reads = self.reads, set()
        try:
            return method(node, frame)
        except Raised as exc:
            if not exc.source:
                exc.source = f"{frame.module.rel}:{frame.line}"
            raise
        finally:
            self.reads = saved

    def _taint(self, frame: Frame) -> frozenset[str]:
        reads = frozenset(self.reads)
        return reads | frame.guards[-1].reads if frame.guards else reads

    def _exec_Expr(self, node: ast.Expr, frame: Frame) -> bool:
        if not isinstance(node.value, ast.Constant):
            self.eval(node.value, frame)
        return NORMAL

    def _exec_Pass(self, node: ast.Pass, frame: Frame) -> bool:
        return NORMAL

    def _exec_Assign(self, node: ast.Assign, frame: Frame) -> bool:
        value = self.eval(node.value, frame)
        frame.line = node.lineno
        for target in node.targets:
            self.assign(target, value, frame, self._taint(frame))
        return NORMAL

    def _exec_AnnAssign(self, node: ast.AnnAssign, frame: Frame) -> bool:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value, frame), frame, self._taint(frame))
        return NORMAL

    def _exec_AugAssign(self, node: ast.AugAssign, frame: Frame) -> bool:
        read = ast.copy_location(
            ast.Name(node.target.id, ast.Load())
            if isinstance(node.target, ast.Name)
            else ast.Attribute(node.target.value, node.target.attr, ast.Load())
            if isinstance(node.target, ast.Attribute)
            else ast.Subscript(node.target.value, node.target.slice, ast.Load()),
            node,
        )
        old = self.eval(read, frame)
        value = self.eval(node.value, frame)
        if isinstance(old, List) and isinstance(node.op, (ast.Add, ast.BitOr)):
            new = arithmetic(node.op, old, value if isinstance(value, List) else List(self.iterate(value) or ()))
            self.write(old, "items", new.items if isinstance(new, List) else new)
            return NORMAL
        if isinstance(old, Dict) and isinstance(value, Dict):
            self.update_dict(old, value)
            return NORMAL
        self.assign(node.target, arithmetic(node.op, old, value), frame, self._taint(frame))
        return NORMAL

    def assign(self, target: ast.expr, value: Any, frame: Frame, taint: frozenset[str]) -> None:
        if isinstance(target, ast.Name):
            scope: Any = frame
            if target.id in frame.globals:
                scope = frame.module
            elif target.id in frame.nonlocals:
                scope = frame.parent
                while scope is not None and target.id not in scope.cells:
                    scope = scope.parent
                scope = scope or frame
            self.write(scope, target.id, value)
            scope.taints[target.id] = taint
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, frame, taint)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.eval(target.value, frame), target.attr, value, taint, frame)
        elif isinstance(target, ast.Subscript):
            holder = self.eval(target.value, frame)
            if not isinstance(target.slice, ast.Slice):
                self.set_item(holder, self.eval(target.slice, frame), value, frame, taint)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame, taint)

    def _unpack(self, targets: list[ast.expr], value: Any, frame: Frame, taint: frozenset[str]) -> None:
        items = self.iterate(value)
        if items is None or any(isinstance(one, ast.Starred) for one in targets) or len(items) != len(targets):
            if isinstance(value, Unknown) and value.options and all(isinstance(one, tuple) and len(one) == len(targets) for one in value.options):
                items = [join([one[index] for one in value.options], value.needs) for index in range(len(targets))]
            else:
                items = self._starred(targets, items) or [Unknown(needs_of(value) or {"unpacking"})] * len(targets)
        for one, item in zip(targets, items, strict=True):
            self.assign(one, item, frame, taint)

    @staticmethod
    def _starred(targets: list[ast.expr], items: list[Any] | None) -> list[Any] | None:
        at = next((index for index, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
        if items is None or at is None or len(items) < len(targets) - 1:
            return None
        tail = len(targets) - at - 1
        return [*items[:at], List(items[at : len(items) - tail]), *items[len(items) - tail :]]

    def set_item(self, holder: Any, index: Any, value: Any, frame: Frame, taint: frozenset[str]) -> None:
        if isinstance(holder, Dict):
            key = self.key(index)
            if isinstance(key, Unknown):
                self.write(holder, SMEARED, Unknown(key.needs | needs_of(value)))
                return
            self.write(holder, key, value)
            holder.taints[key] = taint
            holder.sites[key] = self.site(frame, None, value, taint)
        elif isinstance(holder, List) and isinstance(holder.items, tuple):
            if isinstance(index, int) and -len(holder.items) <= index < len(holder.items):
                items = list(holder.items)
                items[index] = value
                self.write(holder, "items", tuple(items))
            else:
                self.write(holder, "items", Unknown(needs_of(index) or {"index"}))

    def update_dict(self, target: Dict, source: Dict) -> None:
        for key, value in source.cells.items():
            if isinstance(value, Unknown) and value.options and MISSING in value.options and key in target.cells:
                value = join([target.cells[key], *(one for one in value.options if one is not MISSING)], value.needs)
            self.write(target, key, value)
            if key in source.sites:
                target.sites[key] = source.sites[key]

    def _exec_If(self, node: ast.If, frame: Frame) -> bool:
        test = self.eval(node.test, frame)
        reads = frozenset(self.reads)
        frame.cond_reads |= reads
        self.reads = set()
        decided = truth(test)
        text = self.guard_text(node.test, frame)
        if not isinstance(decided, Unknown):
            return self._arm(node.body if decided else node.orelse, frame, text if decided else f"not ({text})", reads, positive=True) and (
                self._after(node, frame, text, reads, decided)
            )
        flow = self.fork(
            [
                lambda: self._arm(node.body, frame, text, reads, positive=True),
                lambda: self._arm(node.orelse, frame, f"not ({text})", reads, positive=True),
            ],
            decided.needs,
            [text, f"not ({text})"],
        )
        return flow and self._after(node, frame, text, reads, None)

    def _arm(self, body: list[ast.stmt], frame: Frame, text: str, reads: frozenset[str], *, positive: bool) -> bool:
        if not body:
            return NORMAL
        frame.guards.append(Guard(text, reads, positive=positive))
        depth = len(frame.guards)
        try:
            return self.block(body, frame)
        finally:
            del frame.guards[depth - 1 :]

    @staticmethod
    def _after(node: ast.If, frame: Frame, text: str, reads: frozenset[str], decided: bool | None) -> bool:
        """What follows an early return stands under its negation."""
        leaves = isinstance(node.body[-1], _LEAVES)
        if leaves and decided is not True and not node.orelse:
            frame.guards.append(Guard(f"not ({text})", reads, positive=False))
        return NORMAL

    def _exec_Return(self, node: ast.Return, frame: Frame) -> bool:
        value = None if node.value is None else self.eval(node.value, frame)
        frame.reads |= self.reads
        frame.reads |= frame.cond_reads
        frame.returns.append(Exit(len(self.trail), value))
        return DEAD

    def _exec_Raise(self, node: ast.Raise, frame: Frame) -> bool:
        source = f"{frame.module.rel}:{node.lineno}"
        if node.exc is None:
            raise self.handling[-1] if self.handling else Raised("RuntimeError", "", source)
        self.in_message += 1
        try:
            raise self.make_raised(node.exc, frame, source)
        finally:
            self.in_message -= 1

    def make_raised(self, node: ast.expr, frame: Frame, source: str) -> Raised:
        if isinstance(node, ast.Call):
            kind = text_of(node.func).rpartition(".")[2]
            parts = [self.show(self.eval(one, frame)) for one in node.args if not isinstance(one, ast.Starred)]
            return Raised(kind, parts[0] if len(parts) == 1 else ", ".join(parts), source)
        value = self.eval(node, frame)
        if isinstance(value, Instance) and isinstance(value.cells.get("_raised_"), Raised):
            return value.cells["_raised_"]
        return Raised(text_of(node), "", source)

    def _exec_Assert(self, node: ast.Assert, frame: Frame) -> bool:
        outcome = truth(self.eval(node.test, frame))
        if outcome is True:
            return NORMAL

        def fail() -> bool:
            self.in_message += 1
            try:
                message = "" if node.msg is None else self.show(self.eval(node.msg, frame))
            finally:
                self.in_message -= 1
            raise Raised("AssertionError", message, f"{frame.module.rel}:{node.lineno}")

        if outcome is False:
            return fail()
        text = text_of(node.test)
        return self.fork([lambda: NORMAL, fail], outcome.needs, [text, f"not ({text})"])

    def _exec_For(self, node: ast.For, frame: Frame) -> bool:
        value = self.eval(node.iter, frame)
        items = self.iterate(value)
        if items is None and (several := self._alternatives(value)):
            taint = self._taint(frame)
            arms = [lambda one=one: self._for_items(node, one, frame, taint) for one in several]
            return self.fork(arms, needs_of(value, value.items if isinstance(value, List) else None), [f"items of {text_of(node.iter)}"] * len(arms))
        if items is None:
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

        return self._loop(node, ((lambda item=item: step(item)) for item in items[:MAX_LOOP]), frame)

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
            for _ in range(MAX_LOOP):
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
        self.pending.append(raised)
        self.tries.append(raised)
        try:
            flow = self.block(node.body, frame)
        except Raised as exc:
            certain, flow = (None if exc.kind == ENDED and raised else exc), DEAD
        finally:
            self.tries.pop()
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
        deltas = [{**self.writes(start, one.pos), **one.delta} for one in exits]
        self.rewind(start, clock)

        def arm(index: int) -> bool:
            self.meet([deltas[index]], needs, clock)
            value = exits[index].value
            return NORMAL if value is None else self._handle(node, value, frame)

        return self.fork([lambda index=index: arm(index) for index in range(len(exits))], needs, ["try"] * len(exits))

    def _handle(self, node: ast.Try, exc: Raised, frame: Frame) -> bool:
        for handler in node.handlers:
            if handler.type is None or self._catches(handler.type, exc):
                self.handling.append(exc)
                try:
                    if handler.name:
                        self.write(frame, handler.name, Instance(None, {"_raised_": exc, "args": (exc.message,)}))
                    return self.block(handler.body, frame)
                finally:
                    self.handling.pop()
        raise exc

    def _catches(self, node: ast.expr, exc: Raised) -> bool:
        names = [text_of(one).rpartition(".")[2] for one in (node.elts if isinstance(node, ast.Tuple) else [node])]
        return self.is_exception(exc.kind, names)

    def _exec_With(self, node: ast.With, frame: Frame) -> bool:
        for item in node.items:
            value = self.eval(item.context_expr, frame)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, frame, self._taint(frame))
        return self.block(node.body, frame)

    def _exec_Global(self, node: ast.Global, frame: Frame) -> bool:
        frame.globals.update(node.names)
        return NORMAL

    def _exec_Nonlocal(self, node: ast.Nonlocal, frame: Frame) -> bool:
        frame.nonlocals.update(node.names)
        return NORMAL

    def _exec_Delete(self, node: ast.Delete, frame: Frame) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                holder = self.eval(target.value, frame)
                key = self.key(self.eval(target.slice, frame))
                if isinstance(holder, Dict) and not isinstance(key, Unknown):
                    self.write(holder, key, MISSING)
            elif isinstance(target, ast.Attribute):
                holder = self.eval(target.value, frame)
                if isinstance(holder, Instance):
                    self.write(holder, target.attr, MISSING)
        return NORMAL

    def _exec_FunctionDef(self, node: ast.FunctionDef, frame: Frame) -> bool:
        made = self.make_function(node, frame)
        self.write(frame if frame.function is not None or frame.parent is not None else self._top(frame), node.name, made)
        return NORMAL

    def _top(self, frame: Frame) -> Any:
        return frame.cls if frame.cls is not None else frame

    def _exec_ClassDef(self, node: ast.ClassDef, frame: Frame) -> bool:
        self.write(frame, node.name, self.make_class(node, frame))
        return NORMAL

    def _exec_Import(self, node: ast.Import, frame: Frame) -> bool:
        for alias in node.names:
            if not self.importable(alias.name):
                raise Raised("ModuleNotFoundError", f"No module named '{alias.name}'", f"{frame.module.rel}:{node.lineno}")
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            found: Any = self.loader.module(name)
            self.write(frame, alias.asname or name, found if found is not None else External(name))
        return NORMAL

    def _exec_ImportFrom(self, node: ast.ImportFrom, frame: Frame) -> bool:
        source = self.absolute(node, frame.module)
        module = self.loader.module(source)
        for alias in node.names:
            if alias.name != "*":
                self.write(frame, alias.asname or alias.name, self.imported(source, module, alias.name, frame))
        return NORMAL

    def imported(self, source: str, module: Module | None, name: str, frame: Frame) -> Any:
        if module is None:
            return self.external(f"{source}.{name}")
        value = self.module_name(module, name)
        if value is MISSING:
            inner = self.loader.module(f"{source}.{name}")
            return inner if inner is not None else Unknown((f"{source}.{name}",))
        return value


__all__ = ["Class", "Function", "Set", "Statements"]
