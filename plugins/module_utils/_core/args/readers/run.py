# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run one small pure function of the release by its syntax tree: a choice list, an argparse converter.

What is outside the few statements and built-ins known here ends in UNKNOWN, never in a guess. An exception the function raises
becomes the argparse exception of the same meaning, with the function's own text.
"""

from __future__ import annotations

import argparse
import ast
import json
from typing import Any

from ..flags import UNKNOWN
from .evaluate import Evaluator
from .names import FunctionRef

MAX_STEPS = 20_000
_MUTATORS = ("add", "append", "extend", "insert", "update")


class Undecidable(Exception):
    """A statement depends on something the source alone does not decide."""


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Raised(Exception):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def run_function(evaluator: Evaluator, function: FunctionRef, args: list[Any]) -> Any:
    """Return what the function returns for positional arguments, UNKNOWN where that is not decided.

    Raises argparse.ArgumentTypeError or ValueError where the function does.
    """
    names = [arg.arg for arg in function.node.args.args]
    if len(args) > len(names) or function.node.args.vararg or function.node.args.kwarg:
        return UNKNOWN
    try:
        return follow(evaluator, function.rel, function.node, dict(zip(names, args, strict=False)))
    except Undecidable:
        return UNKNOWN


def follow(evaluator: Evaluator, rel: str, function: ast.FunctionDef, local: dict[str, Any]) -> Any:
    """Return what a function returns when its names stand for local. Raises as run_function does, or Undecidable."""
    try:
        _Frame(evaluator, rel, local).block(function.body)
    except _Return as done:
        return done.value
    except _Raised as exc:
        kind = argparse.ArgumentTypeError if exc.name == "ArgumentTypeError" else ValueError
        raise kind(str(exc)) from None
    except RecursionError:
        raise Undecidable from None
    return None


def scope_of(evaluator: Evaluator, rel: str, body: list[ast.stmt]) -> dict[str, Any]:
    """Return the local names a function body leaves behind, statement by statement; what cannot be decided is UNKNOWN."""
    frame = _Frame(evaluator, rel, {})
    for stmt in body:
        try:
            frame.statement(stmt)
        except (Undecidable, _Return, _Raised):
            for node in ast.walk(stmt):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    frame.local[node.id] = UNKNOWN
    return frame.local


class _Frame:
    def __init__(self, evaluator: Evaluator, rel: str, local: dict[str, Any]) -> None:
        self.evaluator = evaluator
        self.rel = rel
        self.local = local
        self.steps = 0

    def value(self, node: ast.expr) -> Any:
        return self.evaluator.value(node, self.rel, self.local)

    def block(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: ast.stmt) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Undecidable
        method = getattr(self, f"_{type(stmt).__name__.lower()}", None)
        if method is None:
            raise Undecidable
        method(stmt)

    def _pass(self, stmt: ast.Pass) -> None:
        pass

    def _expr(self, stmt: ast.Expr) -> None:
        if not isinstance(stmt.value, ast.Constant):
            self.value(stmt.value)

    def _return(self, stmt: ast.Return) -> None:
        raise _Return(None if stmt.value is None else self.value(stmt.value))

    def _assign(self, stmt: ast.Assign) -> None:
        value = self.value(stmt.value)
        for target in stmt.targets:
            self.bind(target, value)

    def _annassign(self, stmt: ast.AnnAssign) -> None:
        if stmt.value is not None:
            self.bind(stmt.target, self.value(stmt.value))

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.local[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.evaluator.iterate(value) if value is not UNKNOWN else None
            if items is None or len(items) != len(target.elts):
                raise Undecidable
            for element, item in zip(target.elts, items, strict=True):
                self.bind(element, item)
        elif isinstance(target, ast.Subscript):
            base, index = self.value(target.value), self.value(target.slice)
            if not isinstance(base, dict) or index is UNKNOWN:
                raise Undecidable
            base[index] = value
        else:
            raise Undecidable

    def _if(self, stmt: ast.If) -> None:
        test = self.evaluator.plain(stmt.test, self.rel, self.local)
        if test is not UNKNOWN:
            self.block(stmt.body if test else stmt.orelse)
        elif not stmt.orelse and all(_only_adds(inner) for inner in stmt.body):
            # A list that may be longer: take the longer one, so that nothing SGLang accepts is refused.
            self.block(stmt.body)
        else:
            raise Undecidable

    def _for(self, stmt: ast.For) -> None:
        items = self.evaluator.iterate(self.value(stmt.iter))
        if items is None or stmt.orelse or any(isinstance(node, (ast.Break, ast.Continue)) for node in ast.walk(stmt)):
            raise Undecidable
        for item in items:
            self.bind(stmt.target, item)
            self.block(stmt.body)

    def _import(self, stmt: ast.Import) -> None:
        self._importfrom(stmt)

    def _importfrom(self, stmt: ast.Import | ast.ImportFrom) -> None:
        for alias in stmt.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.local[name] = self.evaluator.names.imported(self.rel, stmt, name)

    def _raise(self, stmt: ast.Raise) -> None:
        call = stmt.exc
        if not isinstance(call, ast.Call):
            raise Undecidable
        text = self.value(call.args[0]) if call.args else ""
        if text is UNKNOWN:
            raise Undecidable
        raise _Raised(ast.unparse(call.func).rpartition(".")[2], str(text))

    def _assert(self, stmt: ast.Assert) -> None:
        test = self.evaluator.plain(stmt.test, self.rel, self.local)
        if test is UNKNOWN:
            raise Undecidable
        if not test:
            raise _Raised("AssertionError", "" if stmt.msg is None else str(self.value(stmt.msg)))

    def _try(self, stmt: ast.Try) -> None:
        if stmt.finalbody or stmt.orelse:
            raise Undecidable
        try:
            self.block(stmt.body)
        except (json.JSONDecodeError, ValueError, argparse.ArgumentTypeError) as exc:
            handler = next((inner for inner in stmt.handlers if _catches(inner, exc)), None)
            if handler is None:
                raise
            if handler.name:
                self.local[handler.name] = str(exc)
            self.block(handler.body)


def _only_adds(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Call)
        and isinstance(stmt.value.func, ast.Attribute)
        and stmt.value.func.attr in _MUTATORS
    )


def _catches(handler: ast.ExceptHandler, exc: Exception) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    wanted = {ast.unparse(kind).rpartition(".")[2] for kind in kinds}
    return any(cls.__name__ in wanted for cls in type(exc).__mro__)
