# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Watch a record while it is resolved: each value written or declared, with file:line. Runs under the engine's interpreter.

What to watch is chosen by what the imported release has: attributes set on the record (and on settings nested in it), and
declarations, which releases from 0.5.15 on return from passes and from 0.5.19 on hand to a function.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from .lines import Lines

PACKAGE = "sglang"
# Where releases from 0.5.15 on keep what was declared, as pairs of a source and a mapping.
STASH = "_resolved_overrides"
# A declaration passes through these on its way there; the line of interest is their caller's.
DECLARE = re.compile(r"declare_\w*resolution")
DEPTH = 8


class Open:
    """A value that plain data cannot hold."""


def plain(value: Any) -> Any:
    """Return a value as JSON would hold it; an Open where it cannot."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return _whole({str(key): plain(one) for key, one in value.items()})
    if isinstance(value, (set, frozenset)):
        return sorted(str(plain(one)) for one in value)
    if isinstance(value, (list, tuple, range)):
        return _whole([plain(one) for one in value])
    names = _members(value)
    if names is not None:
        return _whole({name: plain(getattr(value, name, None)) for name in names})
    text = str(value)
    return Open() if " at 0x" in text else text


def _whole(value: Any) -> Any:
    inner = value.values() if isinstance(value, dict) else value
    return Open() if any(isinstance(one, Open) for one in inner) else value


def _members(value: Any) -> list[str] | None:
    """Return the field names of a dataclass or Struct instance, None for anything else."""
    # The class is asked, not the object: a lazy stand-in has every attribute, and asking may make it import.
    kind = type(value)
    if isinstance(getattr(kind, "__struct_fields__", None), tuple):
        return list(kind.__struct_fields__)
    return [one.name for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None


def nested(value: Any) -> list[str] | None:
    """Return the field names of settings the release nests in a field of its record."""
    own = type(value).__module__.partition(".")[0] == PACKAGE
    return _members(value) if own and not isinstance(value, enum.Enum) else None


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Return the plain values of a field, those of nested settings under dotted names."""
    names = nested(value)
    if names is None:
        yield name, plain(value)
        return
    for one in names:
        yield from leaves(f"{name}.{one}", getattr(value, one, None))


class Recorder:
    """What is written to one record, in order."""

    def __init__(self, root: str, wanted: Callable[[str], bool]) -> None:
        self.root = root
        self.lines = Lines(root)
        self.wanted = wanted
        self.record: Any = None
        self.fields: frozenset[str] = frozenset()
        self.before: dict[str, Any] = {}
        self.writes: dict[str, list[dict[str, Any]]] = {}
        self._now: dict[str, Any] = {}
        self._held: dict[str, Any] = {}
        # By field: the mapping last returned that holds it, and where that was made.
        self._returned: dict[str, tuple[dict[str, Any], str]] = {}
        self._stashed = 0
        # Settings written before they are put on the record; the object is kept so that its id stays its own.
        self._inner: dict[tuple[int, str], tuple[Any, Any, list[str]]] = {}
        self._watched: set[type] = set()

    def start(self, record: Any, fields: list[str]) -> None:
        """Take what is on the record as what was asked, and watch from here on."""
        self.record = record
        self.fields = frozenset(name for name in fields if self.wanted(name))
        self.before = {name: getattr(record, name) for name in fields if name in self.fields and hasattr(record, name)}
        for name, value in self.before.items():
            self._hold(name, value)
            self._now.update(leaves(name, value))
        sys.settrace(self._trace)

    def stop(self) -> None:
        sys.settrace(None)

    def watch(self, cls: type) -> None:
        """Have every attribute set on objects of a class pass by here."""
        if cls in self._watched:
            return
        self._watched.add(cls)
        original: Any = cls.__setattr__

        def __setattr__(obj: Any, name: str, value: Any) -> None:
            original(obj, name, value)
            if self.record is not None:
                # Looking must never change what SGLang does; a line that is lost this way is absent from the answer.
                with contextlib.suppress(Exception):
                    self._set(obj, name, value, sys._getframe(1))

        cls.__setattr__ = __setattr__  # type: ignore[method-assign, assignment]

    def _set(self, obj: Any, name: str, value: Any, frame: FrameType) -> None:
        if obj is self.record:
            if name in self.fields:
                self._note(name, value, frame)
            return
        if frame.f_code.co_name == "__init__":
            return
        chain = self._chain(frame, name, value)
        self._inner[id(obj), name] = (obj, plain(value), chain)
        for field, held in self._held.items():
            for path in _paths(field, held, obj):
                self._change(f"{path}.{name}", plain(value), chain)

    def _trace(self, frame: FrameType, event: str, _arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.root):
            return None
        frame.f_trace_lines = False
        return self._leaving

    def _leaving(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            with contextlib.suppress(Exception):
                self._left(frame, arg)
        return self._leaving

    def _left(self, frame: FrameType, arg: Any) -> None:
        if arg.__class__ is dict and arg:
            for name in self.fields.intersection(arg):
                # Handed on unchanged it is still the one who made it that decided.
                if name not in self._returned or self._returned[name][0] is not arg:
                    self._returned[name] = (arg, self.lines.of_key(frame, name))
        elif nested(arg) is not None:
            self._watch_all(arg)
        self._declared(frame)

    def _declared(self, frame: FrameType) -> None:
        """Note what was declared since the last look, if anything."""
        stash = getattr(self.record, STASH, None)
        if not isinstance(stash, list) or len(stash) == self._stashed:
            return
        new, self._stashed = stash[self._stashed :], len(stash)
        at = frame
        while DECLARE.fullmatch(at.f_code.co_name) and at.f_back is not None:
            at = at.f_back
        for dummy, fields in new:
            for name, value in fields.items():
                if name in self.fields:
                    self._note(name, value, at)

    def _note(self, name: str, value: Any, frame: FrameType) -> None:
        self._hold(name, value)
        chain = self._chain(frame, name, value)
        named = self.lines.name(frame, name)
        for path, one in leaves(name, value):
            # Written by machinery that only carries it, or as part of a whole: decided here is what differs.
            if (path == name and named) or path not in self._now or not _same(self._now[path], one):
                self._change(path, one, self._inner_chain(name, value, path, one) or chain)

    def _inner_chain(self, name: str, value: Any, path: str, one: Any) -> list[str] | None:
        """Return where a nested setting got its value before the whole was put on the record, None where that was here."""
        owner = value
        steps = path[len(name) + 1 :].split(".")
        for step in steps[:-1]:
            owner = getattr(owner, step, None)
        found = self._inner.get((id(owner), steps[-1]))
        return found[2] if found is not None and found[0] is owner and _same(found[1], one) else None

    def _change(self, path: str, value: Any, chain: list[str]) -> None:
        self._now[path] = value
        shown = None if isinstance(value, Open) else value
        self.writes.setdefault(path, []).append({"to": shown, "source": chain[0] if chain else None, "via": chain[1:]})

    def _hold(self, name: str, value: Any) -> None:
        self._held.pop(name, None)
        if nested(value) is None:
            return
        self._held[name] = value
        self._watch_all(value)

    def _watch_all(self, value: Any) -> None:
        for one in [value, *(getattr(value, key, None) for key in nested(value) or ())]:
            if nested(one) is not None and one is not self.record:
                self.watch(type(one))

    def _chain(self, frame: FrameType, name: str, value: Any) -> list[str]:
        """Return where the value was set, innermost first, inside the release."""
        chain: list[str] = []
        at: FrameType | None = frame
        while at is not None and len(chain) < DEPTH:
            if at.f_code.co_filename.startswith(self.root):
                chain.append(self.lines.of_frame(at))
            at = at.f_back
        # Applied by machinery that does not name the field: the pass that returned it is what decided.
        if chain and not self.lines.name(frame, name):
            held, place = self._returned.get(name, ({}, ""))
            if name in held and held[name] is value:
                return [place, *chain]
        return chain


def _paths(path: str, held: Any, wanted: Any) -> Iterator[str]:
    if held is wanted:
        yield path
    for name in nested(held) or ():
        yield from _paths(f"{path}.{name}", getattr(held, name, None), wanted)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
