# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Files of the source as modules whose statements are parsed and evaluated only when a name is asked for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .values import Module

if TYPE_CHECKING:
    from ..chunks import Chunk
    from ..source import SourceTree


class Loader:
    """Finds the file of a dotted module name and hands out its statements by name."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.loaded: dict[str, Module | None] = {}

    def module(self, dotted: str) -> Module | None:
        if dotted not in self.loaded:
            rel = self.tree.find(dotted)
            self.loaded[dotted] = Module(dotted, rel) if rel else None
        return self.loaded[dotted]

    def package_of(self, module: Module) -> str:
        return module.name if module.rel.endswith("/__init__.py") else module.name.rpartition(".")[0]

    def statements(self, module: Module, name: str) -> list[ast.stmt]:
        """Return the statements that make up a name of a module, in order."""
        return self.tree.statements(module.rel, name)

    def chunks(self, module: Module) -> list[Chunk]:
        """Return the statements of a module, not parsed yet, those of one name together."""
        return [chunk for several in self.tree.outline(module.rel).by_name.values() for chunk in several]

    def names(self, module: Module) -> set[str]:
        return set(self.tree.outline(module.rel))
