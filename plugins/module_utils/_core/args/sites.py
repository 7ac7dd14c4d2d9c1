# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every place in the source of a release that sets a field, with the conditions around it, by syntax.

A function becomes a list of steps: what it sets and which functions it names, in the order written. ``paths.py`` strings them
together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from .conditions import negated
from .source import ARGUMENT_CODE, LANDMARK, SERVER, SourceTree
from .writes import NESTED, Scope, is_record, note_names, scope_of, writes_of

# They define flags or hand values over as they are; they decide nothing.
_NOT_DECIDING = ("add_cli_args", "from_cli_args", "__init__", "__setattr__")
_HELPER = re.compile(r"from sglang\.srt\.arg_groups\.\w+ import")
_RECORD = re.compile(r"server_args|ServerArgs|\.override\(")


@dataclass(frozen=True)
class Site:
    """One place that sets a field (``*``: the source computes the name).

    guards: the conditions around it, outermost first, early returns included; once strung together also those of the callers.
    source: file:line that names the field; statement: file:line an interpretation passes when it comes here.
    """

    field: str
    value: str
    source: str
    function: str
    guards: tuple[str, ...]
    how: str
    statement: str

    @property
    def key(self) -> tuple[str, int]:
        rel, dummy, line = self.statement.rpartition(":")
        return rel, int(line)


@dataclass(frozen=True)
class Mention:
    """A name that may be a function to run, under the conditions it is named. ``given``: it is called with the record."""

    name: str
    guards: tuple[str, ...]
    given: bool


@dataclass
class Function:
    """One function of the source: its decorators and its steps in the order written."""

    rel: str
    name: str
    decorators: tuple[str, ...]
    steps: list[Site | Mention] = field(default_factory=list)


def functions_of(tree: SourceTree, names: Collection[str]) -> tuple[list[Function], list[Function]]:
    """Return the functions of the argument code, and those elsewhere that set one of the fields or lead back to it."""
    early = dict.fromkeys([LANDMARK, *(rel for prefix in ARGUMENT_CODE for rel in tree.glob(prefix))])
    inside = [one for rel in early for one in _in_file(tree, rel, names, argument_code=True)]
    written = re.compile(
        rf"\.(?:{'|'.join(names)})\b[\w.]*\s*=[^=]|['\"]?\b(?:{'|'.join(names)})\b['\"]?\]?\s*[=:,][^=]|setattr\("
    )
    outside: list[Function] = []
    for rel in tree.glob(SERVER):
        text = "" if rel in early else tree.read(rel) or ""
        if _HELPER.search(text) or (_RECORD.search(text) and (written.search(text) or (NESTED in names and NESTED in text))):
            outside += [one for one in _in_file(tree, rel, names, argument_code=False) if one.steps]
    return inside, outside


def _in_file(tree: SourceTree, rel: str, names: Collection[str], *, argument_code: bool) -> list[Function]:
    module = tree.module(rel)
    if module is None:
        return []
    helper = not argument_code and _HELPER.search(tree.read(rel) or "") is not None
    walker = _Walker(rel, names, argument_code, helper, [])
    walker.definitions(module.body, None, Scope(argument_code=argument_code))
    return walker.found


@dataclass(frozen=True)
class _Walker:
    rel: str
    names: Collection[str]
    argument_code: bool
    helper: bool
    found: list[Function]

    def definitions(self, body: Sequence[ast.stmt], own_class: str | None, scope: Scope) -> None:
        for stmt in body:
            if isinstance(stmt, ast.ClassDef):
                self.definitions(stmt.body, stmt.name, scope)
            elif isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(stmt, own_class, scope)
            elif isinstance(stmt, (ast.If, ast.Try)):
                self.definitions([*stmt.body, *stmt.orelse], own_class, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, own_class: str | None, scope: Scope) -> None:
        if node.name in _NOT_DECIDING and self.argument_code:
            return
        made = Function(self.rel, node.name, tuple(one_line(one) for one in node.decorator_list))
        self.found.append(made)
        made.steps += self._steps(node.body, node.name, own_class, (), scope_of(node, scope, own_class))

    def _steps(
        self, body: Sequence[ast.stmt], function: str, own_class: str | None, guards: tuple[str, ...], scope: Scope
    ) -> Iterator[Site | Mention]:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if stmt.name not in scope.setters:  # its calls are the writes
                    yield from self._steps(stmt.body, stmt.name, own_class, guards, scope_of(stmt, scope, None))
            elif isinstance(stmt, ast.If):
                test = one_line(stmt.test)
                yield from self._mentions(stmt.test, guards, scope)
                yield from self._steps(stmt.body, function, own_class, (*guards, test), scope)
                yield from self._steps(stmt.orelse, function, own_class, (*guards, negated(stmt.test)), scope)
                guards = (*guards, *_past(stmt))
            elif isinstance(stmt, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)):
                for part, guard in _parts(stmt):
                    yield from self._steps(part, function, own_class, (*guards, guard) if guard else guards, scope)
                for head in _heads(stmt):
                    yield from self._mentions(head, guards, scope)
            elif not isinstance(stmt, ast.ClassDef):
                note_names(stmt, scope)
                for write in writes_of(stmt, self.names, scope):
                    if write.name == "*" and self.argument_code:
                        continue  # the record's own machinery, which applies what is listed elsewhere
                    value, statement = " ".join(write.value.split()), f"{self.rel}:{stmt.lineno}"
                    yield Site(write.name, value, f"{self.rel}:{write.line}", function, guards, write.how, statement)
                yield from self._mentions(stmt, guards, scope)

    def _mentions(self, node: ast.AST, guards: tuple[str, ...], scope: Scope) -> Iterator[Mention]:
        if not self.argument_code and not self.helper:
            return
        given: set[str] = set()
        found: list[tuple[int, int, str]] = []
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and any(is_record(one, scope) or one_line(one) == "self" for one in part.args):
                given.add(one_line(part.func).rpartition(".")[2])
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                found.append((part.lineno, part.col_offset, part.id))
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
                found.append((part.lineno, part.end_col_offset or 0, part.attr))
        for dummy_line, dummy_column, name in sorted(found):
            yield Mention(name, guards, name in given)


def _heads(stmt: ast.stmt) -> list[ast.expr]:
    if isinstance(stmt, (ast.For, ast.AsyncFor)):
        return [stmt.iter]
    if isinstance(stmt, ast.While):
        return [stmt.test]
    return [item.context_expr for item in stmt.items] if isinstance(stmt, (ast.With, ast.AsyncWith)) else []


def _parts(stmt: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], str]]:
    """Return the blocks of a compound statement, each with the condition it runs under."""
    if isinstance(stmt, (ast.For, ast.AsyncFor)):
        yield stmt.body, f"for {one_line(stmt.target)} in {one_line(stmt.iter)}"
        yield stmt.orelse, ""
    elif isinstance(stmt, ast.While):
        yield stmt.body, one_line(stmt.test)
        yield stmt.orelse, ""
    elif isinstance(stmt, ast.Try):
        yield [*stmt.body, *stmt.orelse], ""
        for handler in stmt.handlers:
            yield handler.body, f"{one_line(handler.type) if handler.type else 'any exception'} was raised"
        yield stmt.finalbody, ""
    elif isinstance(stmt, ast.Match):
        for case in stmt.cases:
            yield case.body, f"{one_line(stmt.subject)} matches {one_line(case.pattern)}"
    elif isinstance(stmt, (ast.With, ast.AsyncWith)):
        yield stmt.body, ""


def _past(stmt: ast.If) -> list[str]:
    """Return what holds after an ``if`` whose arms leave: ``if a: return`` is followed by what runs where not a."""
    out: list[str] = []
    rest: ast.If | None = stmt
    while rest is not None and _leaves(rest.body):
        out.append(negated(rest.test))
        rest = rest.orelse[0] if len(rest.orelse) == 1 and isinstance(rest.orelse[0], ast.If) else None
    if not out and stmt.orelse and _leaves(stmt.orelse) and not isinstance(stmt.orelse[0], ast.If):
        out.append(one_line(stmt.test))
    return out


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends by leaving the function or the loop."""
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def one_line(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
