# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every place in the argument code of a release that sets a field, with the conditions that enclose it.

An inventory by syntax, earlier returns of the same function included; the conditions of its callers count too and are not shown.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .source import LANDMARK, SourceTree

PLACES = ("srt/arg_groups/", "srt/server_args")
# They define flags or hand values over; they decide nothing.
_NOT_DECIDING = ("add_cli_args", "from_cli_args", "__init__")


@dataclass(frozen=True)
class Site:
    """One place that sets a field. ``guards`` are the enclosing conditions, outermost first."""

    field: str
    value: str
    source: str
    function: str
    guards: tuple[str, ...]

    def text(self) -> str:
        when = " and ".join(self.guards) or "always"
        return f"{self.source} {self.function}: {self.field} = {self.value}\n    when {when}"


def find_sites(tree: SourceTree, names: Collection[str]) -> list[Site]:
    """Return the places that set one of the fields, by file and line."""
    out: list[Site] = []
    files = dict.fromkeys([LANDMARK, *(rel for prefix in PLACES for rel in tree.glob(prefix))])
    for rel in files:
        text = tree.read(rel) or ""
        module = tree.module(rel) if any(name in text for name in names) else None
        if module is not None:
            out += _walk(module.body, rel, "module", (), names)
    return out


def _walk(body: Sequence[ast.stmt], rel: str, function: str, guards: tuple[str, ...], names: Collection[str]) -> Iterator[Site]:
    for stmt in body:
        if isinstance(stmt, ast.ClassDef):
            inner = [part for part in stmt.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))]
            yield from _walk(inner, rel, stmt.name, guards, names)
        elif isinstance(stmt, ast.FunctionDef):
            if stmt.name not in _NOT_DECIDING:
                yield from _walk(stmt.body, rel, stmt.name, guards, names)
        elif isinstance(stmt, ast.If):
            test = ast.unparse(stmt.test)
            yield from _walk(stmt.body, rel, function, (*guards, test), names)
            yield from _walk(stmt.orelse, rel, function, (*guards, f"not ({test})"), names)
            if _leaves(stmt.body) and not stmt.orelse:
                guards = (*guards, f"not ({test})")
        elif isinstance(stmt, (ast.For, ast.While, ast.With, ast.Try)):
            parts = [*stmt.body, *getattr(stmt, "orelse", []), *getattr(stmt, "finalbody", [])]
            parts += [inner for handler in getattr(stmt, "handlers", []) for inner in handler.body]
            yield from _walk(parts, rel, function, guards, names)
        elif function != "module":
            for field, value, line in _written(stmt, names):
                yield Site(field, value, f"{rel}:{line}", function, guards)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends by leaving the function or the loop, so that what follows runs only where its condition is false."""
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _written(stmt: ast.stmt, names: Collection[str]) -> Iterator[tuple[str, str, int]]:
    if isinstance(stmt, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and stmt.value is not None:
        for target in stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]:
            name = _target(target, names)
            if name is not None:
                yield name, ast.unparse(stmt.value), stmt.lineno
    for node in ast.walk(stmt):
        if isinstance(node, ast.Call):
            for key in node.keywords:
                if key.arg in names and _declares(node):
                    yield str(key.arg), ast.unparse(key.value), node.lineno
        elif isinstance(node, ast.Dict) and isinstance(stmt, (ast.Return, ast.Assign)):
            for key_node, value in zip(node.keys, node.values, strict=True):
                if isinstance(key_node, ast.Constant) and key_node.value in names:
                    yield str(key_node.value), ast.unparse(value), key_node.lineno


def _target(target: ast.expr, names: Collection[str]) -> str | None:
    if isinstance(target, ast.Attribute):
        if target.attr in names:
            return target.attr
        inner = _target(target.value, names)
        return f"{inner}.{target.attr}" if inner else None
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value in names:
        return str(target.slice.value)
    return None


def _declares(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    return "declare" in name or "override" in name or name in ("dict", "setattr", "update")
