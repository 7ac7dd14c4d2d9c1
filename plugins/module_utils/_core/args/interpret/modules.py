# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Files of the source as modules whose statements are parsed and evaluated only when a name is asked for."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .values import Module

if TYPE_CHECKING:
    from ..source import SourceTree

_CONTINUES = re.compile(r"[)\]}#]|(?:else|elif|except|finally)\b")
_HEAD = re.compile(r"(?:async\s+)?(?:def|class)\s+(\w+)|(\w+)\s*(?::[^=]+)?=(?!=)")
_IMPORT = re.compile(r"from\s+[\w.]+\s+import\s+(.*)", re.DOTALL)
# What may hold a quote that opens nothing: a string of one line, a comment.
_QUOTE = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#')
_COMMENT = re.compile(r"#[^\n]*")
_MUTATORS = frozenset({"append", "extend", "insert", "update", "setdefault", "add", "remove", "discard", "pop"})
_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


class Chunk:
    """One top-level statement: where it stands, and its tree once it was asked for."""

    __slots__ = ("first", "lines", "statements")

    def __init__(self, first: int, lines: list[str]) -> None:
        self.first = first
        self.lines = lines
        self.statements: list[ast.stmt] | None = None

    def parse(self) -> list[ast.stmt]:
        if self.statements is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                tree = ast.parse("\n" * (self.first - 1) + "\n".join(self.lines))
            self.statements = tree.body
            self.lines = []
        return self.statements


def split(text: str) -> Iterator[Chunk]:
    """Cut a file into its top-level statements without parsing it."""
    lines = text.split("\n")
    start, quote, decorated = 0, "", False
    for index, line in enumerate(lines):
        if not quote and line and not line[0].isspace() and not _CONTINUES.match(line):
            if not decorated and index > start:
                yield Chunk(start + 1, lines[start:index])
                start = index
            decorated = line[0] == "@" or (decorated and not line.startswith(("def ", "class ", "async ")))
        if quote or '"""' in line or "'''" in line:
            quote = _quote_after(line, quote)
    if start < len(lines):
        yield Chunk(start + 1, lines[start:])


def _quote_after(line: str, quote: str) -> str:
    """Return the triple quote that is open after a line, "" for none."""
    at = 0
    while True:
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return quote
            at, quote = end + 3, ""
            continue
        match = _QUOTE.search(line, at)
        if match is None or match[0] == "#":
            return ""
        at = match.end()
        quote = match[0] if match[0] in ('"""', "'''") else ""


def _imported(text: str) -> set[str] | None:
    """Return the names a plain ``from … import …`` binds, None for any other statement."""
    match = _IMPORT.match(_COMMENT.sub("", text).strip())
    if match is None:
        return None
    names = match[1].strip().strip("()").split(",")
    out = {name.split()[-1] for name in names if name.strip()}
    return out if all(name.isidentifier() or name == "*" for name in out) else None


def names_bound(statement: ast.stmt) -> set[str]:
    """Return the names a statement binds or changes at the level of its module or class."""
    out: set[str] = set()
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        out.add(statement.name)
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        out.update((alias.asname or alias.name.split(".")[0]) for alias in statement.names)
    elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    out.add(node.id)
    elif isinstance(statement, ast.Expr):
        func = statement.value.func if isinstance(statement.value, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in _MUTATORS and isinstance(func.value, ast.Name):
            out.add(func.value.id)
    elif isinstance(statement, _BLOCKS):
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                out |= names_bound(child)
            elif isinstance(child, ast.ExceptHandler):
                for inner in child.body:
                    out |= names_bound(inner)
    return out


def index(bindings: dict[str, list[ast.stmt]], body: list[ast.stmt]) -> None:
    for statement in body:
        for name in names_bound(statement):
            bindings.setdefault(name, []).append(statement)


class Loader:
    """Finds the file of a dotted module name and hands out its statements by name."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.loaded: dict[str, Module | None] = {}
        # Syntax does not change between two checks of one open source; it stays with it.
        self.chunks: dict[str, dict[str, list[Chunk]]] = vars(tree).setdefault("interpreted_chunks", {})

    def module(self, dotted: str) -> Module | None:
        if dotted not in self.loaded:
            rel = self._find(dotted)
            self.loaded[dotted] = self._load(dotted, rel) if rel else None
        return self.loaded[dotted]

    def package_of(self, module: Module) -> str:
        return module.name if module.rel.endswith("/__init__.py") else module.name.rpartition(".")[0]

    def _find(self, dotted: str) -> str | None:
        if dotted.partition(".")[0] != "sglang":
            return None
        rel = "/".join(dotted.split(".")[1:])
        for name in (f"{rel}.py", f"{rel}/__init__.py") if rel else ("__init__.py",):
            if self.tree.exists(name):
                return name
        return None

    def _load(self, dotted: str, rel: str) -> Module:
        module = Module(dotted, rel)
        if self.chunks.get(dotted):
            return module
        by_name: dict[str, list[Chunk]] = {}
        try:
            for chunk in split(self.tree.read(rel) or ""):
                for name in self._names_of(chunk):
                    by_name.setdefault(name, []).append(chunk)
        except (SyntaxError, ValueError):
            return self._load_whole(module)
        self.chunks[dotted] = by_name
        return module

    def _load_whole(self, module: Module) -> Module:
        tree = self.tree.module(module.rel)
        self.chunks[module.name] = {}
        if tree is not None:
            index(module.bindings, tree.body)
        return module

    def _names_of(self, chunk: Chunk) -> set[str]:
        head = next((line for line in chunk.lines if line and not line[0].isspace() and line[0] not in "@#"), "")
        match = _HEAD.match(head)
        if match and not any(line.startswith("@") and "overload" in line for line in chunk.lines):
            return {match[1] or match[2]}
        if not head or head.startswith(('"""', "'''", '"', "'")):
            return set()
        imported = _imported("\n".join(chunk.lines))
        if imported is not None:
            return imported
        out: set[str] = set()
        for statement in chunk.parse():
            out |= names_bound(statement)
        return out

    def statements(self, module: Module, name: str) -> list[ast.stmt]:
        """Return the statements that make up a name of a module, in order."""
        if name not in module.bindings:
            found: list[ast.stmt] = []
            try:
                for chunk in self.chunks.get(module.name, {}).get(name, ()):
                    several = chunk.parse()
                    found += several if len(several) == 1 else [one for one in several if name in names_bound(one)]
            except (SyntaxError, ValueError):
                self._load_whole(module)
                return module.bindings.get(name, [])
            module.bindings[name] = found
        return module.bindings[name]

    def names(self, module: Module) -> set[str]:
        return set(self.chunks.get(module.name, {})) | set(module.bindings)
