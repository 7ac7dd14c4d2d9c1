# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The statements of one file or class by the name they bind, parsed when they are asked for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .chunks import Chunk, ClassDef, cut_file, names_bound, names_of, share

# What parsing a text may end in.
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Outline(Mapping[str, list[ast.stmt]]):
    """Name → the statements that make it up, in order. ``by_name`` tells the same as text, before anything is parsed."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        """Raises what parsing raises where the text of a chunk does not tell its names."""
        self.chunks = list(chunks)
        self.by_name: dict[str, list[Chunk]] = {}
        self._found: dict[str, list[ast.stmt]] = {}
        for chunk in self.chunks:
            for name in names_of(chunk):
                self.by_name.setdefault(name, []).append(chunk)

    def __getitem__(self, name: str) -> list[ast.stmt]:
        if name not in self._found:
            found: list[ast.stmt] = []
            for chunk in self.by_name[name]:
                several = chunk.parse()
                found += several if len(several) == 1 else [one for one in several if name in names_bound(one)]
            self._found[name] = found
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def __contains__(self, name: object) -> bool:
        return name in self.by_name


def by_name(body: Iterable[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Return statements that are parsed already by the name they bind."""
    out: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in names_bound(statement):
            out.setdefault(name, []).append(statement)
    return out


def members(node: ast.ClassDef) -> Mapping[str, list[ast.stmt]]:
    """Return what a class binds by name."""
    return Outline(node.members) if isinstance(node, ClassDef) else by_name(node.body)


def fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    """Return the annotated names of a class; its methods are not parsed for that."""
    if isinstance(node, ClassDef):
        body = [one for chunk in node.members if not _is_definition(chunk) for one in chunk.parse()]
    else:
        body = node.body
    return (one for one in body if isinstance(one, ast.AnnAssign))


def _is_definition(chunk: Chunk) -> bool:
    return chunk.text.lstrip().startswith(("def ", "async def ", "class ", "@"))


def whole(text: str, chunks: Sequence[Chunk]) -> ast.Module:
    """Parse a file at once and hand each chunk its trees. Raises what ast.parse raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        module = ast.parse(text)
    if chunks:
        share(module.body, chunks)
    return module


def outline_of(text: str) -> Outline:
    """Return the outline of a file; an empty one where it is not Python that this interpreter can read."""
    if "\r" not in text and "\f" not in text:
        try:
            return Outline(cut_file(text))
        except UNPARSABLE:
            pass
    return outline_at_once(text)


def outline_at_once(text: str) -> Outline:
    """Return the outline of a file that cannot be cut: parsed as a whole, or empty."""
    only = Chunk(text, 1, 0, len(text))
    try:
        only.hold(whole(text, [only]).body)
    except UNPARSABLE:
        return Outline([])
    made = Outline([])
    made.chunks = [only]
    made.by_name = {name: [only] for name in by_name(only.parse())}
    return made
