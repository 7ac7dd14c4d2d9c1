# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From a running frame to the line of the source that decides. Runs under the engine's interpreter."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from types import FrameType


class Lines:
    """Lines of the files below one folder, which are named as seen from there."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._trees: dict[str, ast.Module | None] = {}
        self._statements: dict[str, list[tuple[int, int]]] = {}

    def of_frame(self, frame: FrameType) -> str:
        return self.of_statement(frame.f_code.co_filename, frame.f_lineno)

    def of_statement(self, path: str, line: int) -> str:
        """Return file:line of the statement at a line."""
        return f"{path[len(self.root) :]}:{self._statement(path, line)[0]}"

    def of_key(self, frame: FrameType, name: str) -> str:
        """Return where a function that is being left put a key into what it returns; its last line where that is not clear."""
        path = frame.f_code.co_filename
        lines = {line for node in _bodies(self._tree(path), frame.f_code.co_firstlineno) for line in _key_lines(node, name)}
        return f"{path[len(self.root) :]}:{lines.pop()}" if len(lines) == 1 else self.of_frame(frame)

    def name(self, frame: FrameType, name: str) -> bool:
        """Whether the statement under way names a field."""
        start, end = self._statement(frame.f_code.co_filename, frame.f_lineno)
        text = "".join(linecache.getline(frame.f_code.co_filename, line) for line in range(start, end + 1))
        return re.search(rf"\b{re.escape(name)}\b", text) is not None

    def _tree(self, path: str) -> ast.Module | None:
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse("".join(linecache.getlines(path)))
            except (SyntaxError, ValueError):
                self._trees[path] = None
        return self._trees[path]

    def _statement(self, path: str, line: int) -> tuple[int, int]:
        """Return the first and last line of the innermost statement at a line."""
        if path not in self._statements:
            self._statements[path] = _spans(self._tree(path))
        spans = [(start, end) for start, end in self._statements[path] if start <= line <= end]
        return max(spans, default=(line, line))


def _bodies(tree: ast.Module | None, first_line: int) -> Iterator[ast.AST]:
    """Return the function that begins at a line, decorators included."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if start == first_line:
                yield node


def _key_lines(function: ast.AST, name: str) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            yield from (key.lineno for key in node.keys if isinstance(key, ast.Constant) and key.value == name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.Constant) and key.value == name:
                    yield node.lineno


def _spans(tree: ast.Module | None) -> list[tuple[int, int]]:
    """Return the lines of each simple statement."""
    if tree is None:
        return []
    return [(n.lineno, n.end_lineno or n.lineno) for n in ast.walk(tree) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
