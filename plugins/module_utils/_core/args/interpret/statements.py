# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Execute statements of the source: branches on undecided conditions fork, loops over known items unroll, raise ends a path."""

from __future__ import annotations

import ast
import sys
from functools import partial
from typing import Any

from ...errors import InferopsError
from ..conditions import Words, negated, text_of
from .control import Control
from .frames import Frame, Guard
from .machine import DEAD, NORMAL, Exit
from .operators import arithmetic, truth
from .values import (
    MISSING,
    SMEARED,
    Dict,
    External,
    Instance,
    List,
    Module,
    Raised,
    Unknown,
    join,
    needs_of,
)
from .visits import visit_of

_LEAVES = (ast.Return, ast.Continue)


class Statements(Control):
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
        if self.watched and (frame.module.rel, node.lineno) in self.watched and self.frames:
            self.visits.append(visit_of(self.frames, node.lineno, self.doubt, self.pending))
        method = getattr(self, "_exec_" + type(node).__name__, None)
        if method is None:
            return NORMAL
        saved, self.reads = self.reads, set()
        try:
            goes_on: bool = method(node, frame)
            return goes_on
        except Raised as exc:
            exc.step = exc.step or self.step()
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
            self.spend(len(new.items) if isinstance(new, List) and isinstance(new.items, tuple) else 0)
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
            if (
                isinstance(value, Unknown)
                and value.options
                and all(isinstance(one, tuple) and len(one) == len(targets) for one in value.options)
            ):
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
                self.write(
                    target, key, join([target.cells[key], *(one for one in value.options if one is not MISSING)], value.needs)
                )
            else:
                self.write(target, key, value)
            if key in source.sites:
                target.sites[key] = source.sites[key]

    def _exec_If(self, node: ast.If, frame: Frame) -> bool:
        test = self.eval(node.test, frame)
        reads = frozenset(self.reads)
        frame.cond_reads |= reads
        self.reads = set()
        decided = truth(test)
        guard = self.guard(node.test, frame)
        if not isinstance(decided, Unknown):
            arm, text = (node.body, text_of) if decided else (node.orelse, negated)
            shown = partial(text, guard)
            return self._arm(arm, frame, shown, reads, positive=True) and self._after(node, frame, guard, reads, decided)
        holds, fails = partial(text_of, guard), partial(negated, guard)
        flow = self.fork(
            [
                lambda: self._arm(node.body, frame, holds, reads, positive=True),
                lambda: self._arm(node.orelse, frame, fails, reads, positive=True),
            ],
            decided.needs,
            [holds, fails],
        )
        return flow and self._after(node, frame, guard, reads, None)

    def _arm(self, body: list[ast.stmt], frame: Frame, words: Words, reads: frozenset[str], *, positive: bool) -> bool:
        if not body:
            return NORMAL
        frame.guards.append(Guard(words, reads, positive=positive))
        depth = len(frame.guards)
        try:
            return self.block(body, frame)
        finally:
            del frame.guards[depth - 1 :]

    @staticmethod
    def _after(node: ast.If, frame: Frame, guard: ast.expr, reads: frozenset[str], decided: bool | None) -> bool:
        """What follows an early return stands under its negation."""
        leaves = isinstance(node.body[-1], _LEAVES)
        if leaves and decided is not True and not node.orelse:
            frame.guards.append(Guard(partial(negated, guard), reads, positive=False))
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
            return Raised(kind, parts[0] if len(parts) == 1 else ", ".join(parts), source, stated=True)
        value = self.eval(node, frame)
        if isinstance(value, Instance) and isinstance(value.cells.get("_raised_"), Raised):
            held: Raised = value.cells["_raised_"]
            return held
        return Raised(text_of(node), "", source, stated=True)

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
            raise Raised("AssertionError", message, f"{frame.module.rel}:{node.lineno}", stated=True)

        if outcome is False:
            return fail()
        return self.fork([lambda: NORMAL, fail], outcome.needs, [partial(text_of, node.test), partial(negated, node.test)])

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
            self._ask_for(alias.name, node, frame)
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            found: Any = self.loader.module(name)
            self.write(frame, alias.asname or name, found if found is not None else External(name))
        return NORMAL

    def _ask_for(self, name: str, node: ast.stmt, frame: Frame) -> None:
        """Import from outside the source: a question only where its failure is provided for."""
        there: Any = self.importable(name) if frame in self.import_guards else True
        if there is True:
            return

        def fail() -> bool:
            raise Raised("ModuleNotFoundError", f"No module named '{name}'", f"{frame.module.rel}:{node.lineno}", stated=True)

        if there is False:
            fail()
        self.fork([lambda: NORMAL, fail], there.needs, [f"{name} is installed", f"{name} is not installed"])

    def _exec_ImportFrom(self, node: ast.ImportFrom, frame: Frame) -> bool:
        source = self.absolute(node, frame.module)
        module = self.loader.module(source)
        if module is None:
            self._ask_for(source, node, frame)
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
            return inner if inner is not None else self._absent(source, module, name, frame)
        return value

    def _absent(self, source: str, module: Module, name: str, frame: Frame) -> Any:
        """A name its module does not bind: made at run time, Python's own ImportError, or a file that cannot be read here."""
        text = self.loader.tree.module(module.rel)
        if text is None:
            raise InferopsError(
                f"{module.rel} of SGLang {self.loader.tree.version} cannot be read",
                where=module.rel,
                why=f"it is not Python that this interpreter can parse ({sys.version.partition(' ')[0]})",
                do="run the check with the Python version this release is made for",
            )
        if any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in text.body):
            return Unknown((f"{source}.{name}",))
        raise Raised("ImportError", f"cannot import name {name} from {source}", f"{frame.module.rel}:{frame.line}")
