# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The values the interpreter computes with: Python's own, mutable cells, and the one that is not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class _Missing:
    """A cell that does not exist (yet); never a value a program can see."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
NO_NEEDS: frozenset[str] = frozenset()
MAX_OPTIONS = 8
# Python's own refusals that stand in for a validation in SGLang (a limit compared with a None that was never set).
VALIDATING = frozenset({"JSONDecodeError", "TypeError", "ValueError", "ZeroDivisionError"})


class Unknown:
    """A value that is not decided. ``options``, when given, are all it can be; ``needs`` names what would decide it."""

    __slots__ = ("needs", "options")

    def __init__(self, needs: Iterable[str] = (), options: tuple[Any, ...] | None = None) -> None:
        self.needs = frozenset(needs)
        self.options = options

    def __repr__(self) -> str:
        return f"Unknown({sorted(self.needs)}, {self.options})"


class Obj:
    """Anything with identity and state. Every change of ``cells`` goes through the trail, so that it can be undone."""

    __slots__ = ("birth", "cells", "taints")
    clock = 0

    def __init__(self, cells: dict[Any, Any] | None = None) -> None:
        self.cells: dict[Any, Any] = {} if cells is None else cells
        self.taints: dict[Any, frozenset[str]] = {}
        Obj.clock += 1
        self.birth = Obj.clock


class List(Obj):
    """A list; its items are one cell."""

    __slots__ = ()

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__({"items": tuple(items)})

    @property
    def items(self) -> tuple[Any, ...] | Unknown:
        items: tuple[Any, ...] | Unknown = self.cells["items"]
        return items


class Set(List):
    """A set: items without duplicates, in the order of insertion."""

    __slots__ = ()


class Stash(List):
    """The record's list of declarations: what is added to it is decided. Reads go through the views."""

    __slots__ = ("record",)

    def __init__(self, record: Any) -> None:
        super().__init__()
        self.record = record


class Dict(Obj):
    """A dict; the key ``SMEARED`` marks one that was written under an unknown key."""

    __slots__ = ("sites",)

    def __init__(self, cells: dict[Any, Any] | None = None) -> None:
        super().__init__(cells)
        self.sites: dict[Any, Any] = {}


class _Smeared:
    def __repr__(self) -> str:
        return "SMEARED"


SMEARED = _Smeared()


class Module(Obj):
    """One file of the source; names come into being when they are first asked for."""

    __slots__ = ("name", "pending", "rel")

    def __init__(self, name: str, rel: str) -> None:
        super().__init__()
        self.name = name
        self.rel = rel
        self.pending: set[str] = set()


class Class(Obj):
    """A class of the source; attributes are evaluated when they are first asked for."""

    __slots__ = ("bases", "bindings", "module", "name", "node", "pending")

    def __init__(self, name: str, node: ast.ClassDef, module: Module) -> None:
        super().__init__()
        self.name = name
        self.node = node
        self.module = module
        self.bases: tuple[Any, ...] = ()
        self.bindings: Mapping[str, list[ast.stmt]] = {}
        self.pending: set[str] = set()

    def mro(self) -> list[Class]:
        out: list[Class] = [self]
        for base in self.bases:
            if isinstance(base, Class):
                out += [one for one in base.mro() if one not in out]
        return out

    def base_names(self) -> set[str]:
        names = set()
        for cls in self.mro():
            names.add(cls.name)
            for base in cls.bases:
                if isinstance(base, External):
                    names.add(base.name)
                elif isinstance(base, type):
                    names.add(base.__name__)
        return names


class Instance(Obj):
    """An object of a class of the source."""

    __slots__ = ("cls",)

    def __init__(self, cls: Class | None, cells: dict[str, Any] | None = None) -> None:
        super().__init__(cells)
        self.cls = cls


class Record(Instance):
    """The argument record: raw input in ``cells``, decisions in ``decided``, where each came from in ``origin``."""

    __slots__ = ("decided", "origin")

    def __init__(self, cls: Class | None, cells: dict[str, Any]) -> None:
        super().__init__(cls, cells)
        self.decided = Obj()
        self.origin = Origins()


class Origins(Obj):
    """Per field the places that wrote it; joining keeps all of them."""

    __slots__ = ()


class View:
    """A read view of the record: what was decided so far, over what was asked."""

    __slots__ = ("kind", "record")

    def __init__(self, record: Record, kind: str) -> None:
        self.record = record
        self.kind = kind


class Config(Instance):
    """A model's configuration, read from config.json. ``path`` names it in ``needs``, ``kind`` its type (nested: type.part).

    ``complete``: its class is in the source too, so what it does not name it does not have.
    """

    __slots__ = ("complete", "kind", "path")

    def __init__(self, cells: dict[str, Any], path: str, *, complete: bool = False) -> None:
        super().__init__(None, cells)
        self.path = path
        self.kind = ""
        self.complete = complete


class Function:
    """A function or lambda of the source with the frame it closes over."""

    __slots__ = ("closure", "cls", "decorators", "defaults", "kw_defaults", "module", "name", "node")

    def __init__(self, node: Any, module: Module, closure: Any, cls: Class | None) -> None:
        self.node = node
        self.module = module
        self.closure = closure
        self.cls = cls
        self.name = getattr(node, "name", "<lambda>")
        self.defaults: list[Any] = []
        self.kw_defaults: list[Any] = []
        self.decorators: set[str] = set()

    @property
    def qualname(self) -> str:
        return f"{self.cls.name}.{self.name}" if self.cls else self.name


class Bound:
    """A method together with its first argument."""

    __slots__ = ("function", "this")

    def __init__(self, function: Any, this: Any) -> None:
        self.function = function
        self.this = this


class Native:
    """A callable of ours: ``run(interpreter, args, kwargs)``."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self.name = name
        self.run = run


class External:
    """Something outside the source that is read, by its dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"External({self.name})"


class Super:
    """``super()`` within a method."""

    __slots__ = ("cls", "this")

    def __init__(self, cls: Class, this: Any) -> None:
        self.cls = cls
        self.this = this


class Raised(Exception):
    """The program under interpretation raised on every path that reached this point.

    ``stated``: by a raise or assert of its own; else it is what Python would do with the values as we see them.
    """

    def __init__(self, kind: str, message: str, source: str, *, stated: bool = False) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.source = source
        self.stated = stated
        self.step = 0  # how far the interpretation had come

    @property
    def doubtful(self) -> bool:
        """Whether a gap in our own reading is as likely the cause as the program."""
        return not self.stated and self.kind not in VALIDATING


class OutOfBudget(Exception):
    """Time is up, or memory."""


def same(a: Any, b: Any, depth: int = 0) -> bool:
    """Return whether two values are certainly the same, by type as well."""
    if a is b:
        return True
    if type(a) is not type(b) or depth > 6:
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y, depth + 1) for x, y in zip(a, b, strict=True))
    if isinstance(a, Unknown):
        return False
    if isinstance(a, List):
        return same(a.items, b.items, depth + 1)
    if isinstance(a, Instance):
        return a.cls is b.cls and _same_cells(a.cells, b.cells, depth)
    if isinstance(a, Dict):
        return _same_cells(a.cells, b.cells, depth)
    if isinstance(a, (Obj, Function, Native, Bound)):
        return False
    if isinstance(a, View):
        return a.record is b.record
    if isinstance(a, External):
        return bool(a.name == b.name)
    try:
        return bool(a == b)
    except Exception:
        return False


def _same_cells(a: dict[Any, Any], b: dict[Any, Any], depth: int) -> bool:
    return a.keys() == b.keys() and all(same(a[key], b[key], depth + 1) for key in a)


def options_of(value: Any) -> tuple[Any, ...] | None:
    """Return all the values a value can be, None where that is open."""
    return value.options if isinstance(value, Unknown) else (value,)


def needs_of(*values: Any) -> frozenset[str]:
    out: frozenset[str] = NO_NEEDS
    for value in values:
        if isinstance(value, Unknown):
            out |= value.needs
    return out


def unknown(needs: Iterable[str], options: Iterable[Any] | None = None) -> Any:
    """Return an unknown over the distinct options; the only option itself where there is just one."""
    if options is None:
        return Unknown(needs)
    distinct: list[Any] = []
    for option in options:
        if not any(same(option, one) for one in distinct):
            distinct.append(option)
            if len(distinct) > MAX_OPTIONS:
                return Unknown(needs)
    if len(distinct) == 1:
        return distinct[0]
    return Unknown(needs, tuple(distinct) or None)


def join(values: list[Any], needs: frozenset[str]) -> Any:
    """Return the value after paths that ended with different values meet."""
    first = values[0]
    if all(same(first, other) for other in values[1:]):
        return first
    all_needs = needs | needs_of(*values)
    options: list[Any] = []
    for value in values:
        some = options_of(value)
        if some is None:
            return Unknown(all_needs)
        options += some
    merged = _merged(options, all_needs)
    return unknown(all_needs, options) if merged is None else merged


def _merged(options: list[Any], needs: frozenset[str]) -> Any:
    """Return objects of one kind as one object, joined cell by cell; None where they are not of one kind."""
    first = options[0] if options else None
    if isinstance(first, Instance) and first.cls is not None and "_value_" not in first.cells:
        if isinstance(first, (Record, Config)) or not all(one.__class__ is Instance and one.cls is first.cls for one in options):
            return None
        return Instance(first.cls, _joined_cells(options, needs))
    if isinstance(first, Dict) and all(isinstance(one, Dict) for one in options):
        made = Dict(_joined_cells(options, needs))
        for one in options:
            made.sites |= one.sites
        return made
    return None


def _joined_cells(objects: list[Any], needs: frozenset[str]) -> dict[Any, Any]:
    keys: dict[Any, None] = {}
    for one in objects:
        keys |= dict.fromkeys(one.cells)
    return {key: join([one.cells.get(key, MISSING) for one in objects], needs) for key in keys}


def present(value: Any, default: Any = MISSING) -> Any:
    """Return a value without the option of not existing (replaced by ``default`` where one is given)."""
    if isinstance(value, Unknown) and value.options is not None and MISSING in value.options:
        rest = [default if option is MISSING else option for option in value.options]
        return unknown(value.needs, [option for option in rest if option is not MISSING])
    return value
