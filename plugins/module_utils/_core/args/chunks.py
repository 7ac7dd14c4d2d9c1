# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file or class body cut into its statements without parsing it; each is parsed when it is asked for.

A release has two million lines, a check looks at a few thousand of them: what it spends is mostly what it parses.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence

_CONTINUES = re.compile(r"[)\]}#]|(?:else|elif|except|finally)\b")
_HEAD = re.compile(r"(?:async\s+)?(?:def|class)\s+(\w+)|(\w+)\s*(?::[^=;]+)?=(?!=)(?!\s*\w+\s*=(?!=))|(\w+)\s*:\s*[\w.\[\], |]+$")
_IMPORT = re.compile(r"from\s+[\w.]+\s+import\s+(.*)", re.DOTALL)
_CLASS = re.compile(r"class\s+\w+\s*(?:\([^()#]*\))?\s*:(?=\s*(?:#.*)?$)")
# What may hold a quote that opens nothing: a string of one line, a comment.
_QUOTE = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#')
_COMMENT = re.compile(r"#[^\n]*")
_MUTATORS = frozenset({"append", "extend", "insert", "update", "setdefault", "add", "remove", "discard", "pop"})
_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)
# A class of more lines is cut into its members.
LONG = 40


class Chunk:
    """One statement: where it stands in the text, and its tree once it was asked for.

    owner: what it was cut out of, a class or a whole file. indent: that of a class member. members: what it was cut into.
    """

    __slots__ = ("_statements", "_text", "end", "first", "indent", "members", "owner", "start")

    def __init__(self, text: str, first: int, start: int, end: int, indent: str = "", owner: Chunk | None = None) -> None:
        self._text = text
        self.first = first
        self.start = start
        self.end = end
        self.indent = indent
        self.owner = owner
        self.members: list[Chunk] = []
        self._statements: list[ast.stmt] | None = None

    @property
    def text(self) -> str:
        return self._text[self.start : self.end]

    @property
    def parsed(self) -> bool:
        return self._statements is not None

    def parse(self) -> list[ast.stmt]:
        """Return the statements, mostly one. Raises what ast.parse raises."""
        if self._statements is None:
            try:
                self._statements = self._lazy() or _parsed(self.text, self.first, self.indent)
            except SyntaxError:
                if self.owner is None:
                    raise
                self.owner.parse_at_once()
        return self._statements or []

    def parse_at_once(self) -> None:
        """Parse what was cut where no statement begins: between brackets lines may stand anywhere."""
        try:
            trees = _parsed(self.text, self.first, "")
        except SyntaxError:
            if self.owner is None:
                raise
            self.owner.parse_at_once()
            trees = self._statements or []
        if self.members[0].indent:
            trees = trees[0].body if isinstance(trees[0], ast.ClassDef) else []
        share(trees, self.members)

    def hold(self, statements: list[ast.stmt]) -> None:
        """Take the trees of these lines, parsed with the rest of the file."""
        self._statements = statements

    def _lazy(self) -> list[ast.stmt] | None:
        """Return a long class as one whose body is cut in turn, None for anything else."""
        if self.indent or self._text.count("\n", self.start, self.end) < LONG:
            return None
        lines = self.text.split("\n")
        at = next((index for index, line in enumerate(lines) if line and not line[0].isspace() and line[0] not in "@#)"), 0)
        head = _CLASS.match(lines[at])
        body = next((line for line in lines[at + 1 :] if line.strip() and not line.lstrip().startswith("#")), "")
        indent = body[: len(body) - len(body.lstrip())]
        if head is None or not indent:
            return None
        made = _parsed("\n".join([*lines[:at], head[0] + " pass"]), self.first, "")
        if len(made) != 1 or not isinstance(made[0], ast.ClassDef):
            return None
        start = self.start + sum(len(line) + 1 for line in lines[: at + 1])
        self.members = list(cut(self._text, self.first + at + 1, start, self.end, indent, self))
        return [lazy_class(made[0], self.members)]


class ClassDef(ast.ClassDef):
    """A class whose members are parsed when they are asked for: ``members`` by text, ``body`` all of them."""

    members: list[Chunk]

    @property
    def body(self) -> list[ast.stmt]:
        return [statement for chunk in self.members for statement in chunk.parse()]

    @body.setter
    def body(self, dummy: list[ast.stmt]) -> None:
        pass


def lazy_class(head: ast.ClassDef, members: list[Chunk]) -> ClassDef:
    made = ClassDef(**{name: getattr(head, name) for name in (*head._fields, *head._attributes)})
    made.members = members
    return made


def _parsed(text: str, first: int, indent: str) -> list[ast.stmt]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        if not indent:
            return ast.parse("\n" * (first - 1) + text).body
        # A member may be a comment alone, which is no body.
        holder = ast.parse(f"{chr(10) * (first - 2)}class _:\n{text}\n{indent}pass").body[0]
        return holder.body[:-1] if isinstance(holder, ast.ClassDef) else []


def share(body: Sequence[ast.stmt], chunks: Sequence[Chunk]) -> None:
    """Hand each chunk of a text its trees out of those of the whole text."""
    starts = [chunk.first for chunk in chunks]
    shares: list[list[ast.stmt]] = [[] for dummy in chunks]
    for statement in body:
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
        shares[bisect_right(starts, first) - 1].append(statement)
    for chunk, trees in zip(chunks, shares, strict=True):
        chunk.hold(trees)


def cut_file(text: str) -> list[Chunk]:
    """Return the statements of a file, as text."""
    file = Chunk(text, 1, 0, len(text))
    file.members = list(cut(text, owner=file))
    return file.members


def cut(
    text: str, first: int = 1, start: int = 0, end: int | None = None, indent: str = "", owner: Chunk | None = None
) -> Iterator[Chunk]:
    """Cut a part of a text that begins with line ``first`` into its statements at one indentation."""
    end = len(text) if end is None else end
    deep, quote, decorated = len(indent), "", False
    begin, begin_line, at = start, first, start
    for number, line in enumerate(text[start:end].split("\n"), start=first):
        opens = len(line) > deep and not line[deep].isspace() and (not deep or line.startswith(indent))
        if opens and not quote and not _CONTINUES.match(line, deep):
            if not decorated and at > begin:
                yield Chunk(text, begin_line, begin, at, indent, owner)
                begin, begin_line = at, number
            decorated = line[deep] == "@" or (decorated and not line.startswith(("def ", "class ", "async "), deep))
        if quote or '"""' in line or "'''" in line:
            quote = _quote_after(line, quote)
        at += len(line) + 1
    if begin < end:
        yield Chunk(text, begin_line, begin, end, indent, owner)


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


def names_of(chunk: Chunk) -> set[str]:
    """Return the names a chunk binds, from its text where that is enough."""
    text, deep = chunk.text, len(chunk.indent)
    head = ""
    for line in text.split("\n"):
        if len(line) > deep and not line[deep].isspace() and line[deep] not in "@#)":
            head = line[deep:]
            break
    match = _HEAD.match(head)
    name = next((one for one in match.groups() if one), "") if match else ""
    overloaded = text.lstrip().startswith("@") and "overload" in text
    if name.isidentifier() and ";" not in head and not overloaded and not keyword.iskeyword(name):
        return {name}
    if not head or head.startswith(('"""', "'''", '"', "'")):
        return set()
    imported = _imported(text)
    if imported is not None:
        return imported
    return {name for statement in chunk.parse() for name in names_bound(statement)}


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
