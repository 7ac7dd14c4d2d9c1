# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a name means at the top level of a file of the release: a value, a function, a class, an import."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..flags import UNKNOWN
from ..source import SourceTree
from ..store import PACKAGE


def tail(node: ast.expr | None) -> str:
    """Return the last part of a plain or dotted name, "" for anything else.

    >>> tail(ast.parse("typing.Optional", mode="eval").body)
    'Optional'
    """
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@dataclass(frozen=True)
class External:
    """Something outside the package, known by its dotted name only, such as ``json.loads``."""

    dotted: str


@dataclass(frozen=True, eq=False)
class FunctionRef:
    """A function of the release, with the file it stands in."""

    rel: str
    node: ast.FunctionDef

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, eq=False)
class ClassRef:
    """A class of the release, with the file it stands in."""

    rel: str
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    def bases(self) -> list[str]:
        return [tail(base) for base in self.node.bases]

    def members(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield (name, expression) of what is assigned in the class body."""
        for stmt in self.node.body:
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
                yield stmt.targets[0].id, stmt.value
            elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value is not None:
                yield stmt.target.id, stmt.value


@dataclass(frozen=True)
class EnumMember:
    """A member of an enum of the release."""

    name: str
    value: Any


@dataclass(frozen=True, eq=False)
class Instance:
    """An object made up to follow a method of the release: what it holds by attribute name."""

    values: dict[str, Any]


@dataclass(frozen=True)
class ModuleRef:
    """A module of the release."""

    rel: str


class Names:
    """Top-level names of every file of one release, resolved when asked and through imports."""

    def __init__(self, tree: SourceTree, evaluate: Callable[[ast.expr, str], Any]) -> None:
        self.tree = tree
        self._evaluate = evaluate
        self._bindings: dict[tuple[str, str], ast.stmt | None] = {}
        self._values: dict[tuple[str, str], Any] = {}

    def binding(self, rel: str, name: str) -> ast.stmt | None:
        """Return the last binding of a top-level name of a file; the ``except`` arm of a ``try`` does not count."""
        key = (rel, name)
        if key not in self._bindings:
            self._bindings[key] = None  # files may import everything from each other
            found = [
                stmt
                for stmt in _statements([*self.tree.statements(rel, name), *self.tree.statements(rel, "*")])
                if name in _bound(stmt) or self._among_all(rel, stmt, name)
            ]
            self._bindings[key] = max(found, key=lambda stmt: stmt.lineno, default=None)
        return self._bindings[key]

    def _among_all(self, rel: str, stmt: ast.stmt, name: str) -> bool:
        """Whether a statement is a ``from module import *`` that binds a name."""
        if not isinstance(stmt, ast.ImportFrom) or stmt.names[0].name != "*" or name.startswith("_"):
            return False
        source = self.tree.find(_absolute(rel, stmt))
        return source is not None and self.binding(source, name) is not None

    def get(self, rel: str, name: str) -> Any:
        """Return what a top-level name stands for; UNKNOWN where the file does not say."""
        key = (rel, name)
        if key not in self._values:
            self._values[key] = UNKNOWN  # a definition in terms of itself stays undecided
            self._values[key] = self._resolve(rel, name)
        return self._values[key]

    def _resolve(self, rel: str, name: str) -> Any:
        stmt = self.binding(rel, name)
        if isinstance(stmt, ast.FunctionDef):
            return FunctionRef(rel, stmt)
        if isinstance(stmt, ast.ClassDef):
            return ClassRef(rel, stmt)
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            return self.imported(rel, stmt, name)
        if isinstance(stmt, (ast.Assign, ast.AnnAssign)) and stmt.value is not None:
            return self._evaluate(stmt.value, rel)
        return UNKNOWN

    def imported(self, rel: str, stmt: ast.Import | ast.ImportFrom, name: str) -> Any:
        """Return what an import statement binds to a name."""
        for alias in stmt.names:
            if alias.name == "*" and isinstance(stmt, ast.ImportFrom):
                return self.get(self.tree.find(_absolute(rel, stmt)) or "", name)
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            if isinstance(stmt, ast.Import):
                return self._module(alias.name if alias.asname else name)
            base = _absolute(rel, stmt)
            if (found := self.tree.find(base)) is not None and self.binding(found, alias.name) is not None:
                return self.get(found, alias.name)
            return self._module(f"{base}.{alias.name}")
        return UNKNOWN

    def _module(self, dotted: str) -> Any:
        if (found := self.tree.find(dotted)) is not None:
            return ModuleRef(found)
        return UNKNOWN if dotted.startswith(PACKAGE + ".") else External(dotted)


def _absolute(rel: str, stmt: ast.ImportFrom) -> str:
    if not stmt.level:
        return stmt.module or ""
    package = [PACKAGE, *rel.removesuffix(".py").removesuffix("/__init__").split("/")]
    if not rel.endswith("/__init__.py"):
        package = package[:-1]
    package = package[: len(package) - (stmt.level - 1)]
    return ".".join([*package, *([stmt.module] if stmt.module else [])])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for stmt in body:
        yield stmt
        if isinstance(stmt, ast.If):
            yield from _statements(stmt.body + stmt.orelse)
        elif isinstance(stmt, ast.Try):
            yield from _statements(stmt.body)


def _bound(stmt: ast.stmt) -> Iterator[str]:
    if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
        yield stmt.name
    elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
        for alias in stmt.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(stmt, ast.Assign):
        yield from (target.id for target in stmt.targets if isinstance(target, ast.Name))
    elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value is not None:
        yield stmt.target.id
