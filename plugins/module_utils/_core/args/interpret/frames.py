# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call under way: its names, the conditions it stands under, the paths that already left it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..conditions import Words, said
from .machine import Exit
from .values import Class, Function, Module, Obj


@dataclass(frozen=True)
class Site:
    """Where a value was set, under which condition, and what made that true."""

    source: str
    guard: str
    because: frozenset[str] = field(default=frozenset(), compare=False)
    value: Any = field(default=None, compare=False)


class Guard:
    """A condition the current statement stands under; a negative one is an early return not taken."""

    __slots__ = ("positive", "reads", "words")

    def __init__(self, words: Words, reads: frozenset[str], *, positive: bool) -> None:
        self.words = words
        self.reads = reads
        self.positive = positive

    @property
    def text(self) -> str:
        return said(self.words)


class Frame(Obj):
    """Names of one call. Reading a name adds what it was made from to what the current expression has read."""

    __slots__ = (
        "blind",
        "cls",
        "cond_reads",
        "function",
        "globals",
        "guards",
        "line",
        "loops",
        "module",
        "nonlocals",
        "parent",
        "reads",
        "returns",
    )

    def __init__(self, module: Module, parent: Frame | None = None, function: Function | None = None) -> None:
        super().__init__()
        self.module = module
        self.parent = parent
        self.function = function
        self.cls: Class | None = None
        self.blind = False  # called with arguments of which nothing is known
        self.guards: list[Guard] = []
        self.returns: list[Exit] = []
        self.loops: list[tuple[list[Exit], list[Exit]]] = []
        self.reads: set[str] = set()
        self.cond_reads: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.line = 0
