# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Collections: what can be iterated, comprehensions over it, keys, and how a value prints."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..conditions import text_of
from .attributes import Attributes
from .frames import Frame
from .limits import MAX_SIZE, heavy
from .operators import equal, plain_enum, truth
from .values import MISSING, SMEARED, Dict, External, List, Set, Stash, Unknown, needs_of


class Comprehensions(Attributes):
    """Comprehensions and what they share with displays."""

    def _eval_ListComp(self, node: ast.ListComp, frame: Frame) -> Any:
        items = self._comprehend(node.generators, frame, lambda inner: self.eval(node.elt, inner))
        return items if isinstance(items, Unknown) else List(items)

    def _eval_GeneratorExp(self, node: ast.GeneratorExp, frame: Frame) -> Any:
        return self._eval_ListComp(node, frame)  # type: ignore[arg-type]

    def _eval_SetComp(self, node: ast.SetComp, frame: Frame) -> Any:
        items = self._comprehend(node.generators, frame, lambda inner: self.eval(node.elt, inner))
        return items if isinstance(items, Unknown) else self.make_set(items)

    def _eval_DictComp(self, node: ast.DictComp, frame: Frame) -> Any:
        out = Dict()

        def add(inner: Frame) -> Any:
            key = self.key(self.eval(node.key, inner))
            value = self.eval(node.value, inner)
            if isinstance(key, Unknown):
                out.cells[SMEARED] = key
            else:
                out.cells[key] = value
                out.sites[key] = self.site(frame, node.lineno, value)
            return None

        items = self._comprehend(node.generators, frame, add)
        return items if isinstance(items, Unknown) else out

    def _comprehend(self, generators: list[ast.comprehension], frame: Frame, element: Callable[[Frame], Any]) -> Any:
        """Return the elements as a list, Unknown where their number is open."""
        inner = Frame(frame.module, frame, frame.function)
        inner.cls = frame.cls
        inner.guards = frame.guards
        inner.line = frame.line
        out: list[Any] = []
        failed = self._generate(generators, inner, element, out)
        return failed if failed is not None else out

    def _generate(
        self, generators: list[ast.comprehension], frame: Frame, element: Callable[[Frame], Any], out: list[Any]
    ) -> Any:
        if not generators:
            out.append(element(frame))
            return None
        first, rest = generators[0], generators[1:]
        value = self.eval(first.iter, frame)
        items = self.iterate(value)
        if items is None:
            return Unknown(needs_of(value) or {f"items of {text_of(first.iter)}"})
        if len(items) > MAX_SIZE:
            return Unknown(("too many items",))
        for item in items:
            self.tick()
            self.bind(first.target, item, frame)
            maybe = self._passes(first.ifs, frame)
            if isinstance(maybe, Unknown):
                return self._any_element(rest, frame, element, maybe)
            if maybe:
                failed = self._generate(rest, frame, element, out)
                if failed is not None:
                    return failed
        return None

    def _any_element(self, rest: list[ast.comprehension], frame: Frame, element: Callable[[Frame], Any], maybe: Unknown) -> Any:
        return Unknown(maybe.needs)

    def _passes(self, tests: list[ast.expr], frame: Frame) -> Any:
        for test in tests:
            outcome = truth(self.eval(test, frame))
            if outcome is not True:
                return outcome
        return True

    def iterate(self, value: Any) -> list[Any] | None:
        """Return the items of an iterable as a list, None where they are not known."""
        if isinstance(value, List) and not isinstance(value, Stash):
            return None if isinstance(value.items, Unknown) else list(value.items)
        if isinstance(value, (tuple, str, range)):
            return list(value) if len(value) <= MAX_SIZE else None
        if isinstance(value, Dict):
            if SMEARED in value.cells or any(
                isinstance(one, Unknown) and one.options and MISSING in one.options for one in value.cells.values()
            ):
                return None
            return list(value.cells)
        return self.special_iterate(value)

    def bind(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Assign to a loop or comprehension target."""
        self.assign(target, value, frame, frozenset(self.reads))

    def make_set(self, items: list[Any] | tuple[Any, ...]) -> Set:
        distinct: list[Any] = []
        seen: set[Any] = set()
        for item in items:
            if isinstance(item, tuple) and heavy(item):
                distinct.append(Unknown(("large value",)))
                continue
            try:
                if item in seen and not isinstance(item, Unknown):
                    continue
                seen.add(item)
            except TypeError:
                if any(equal(item, one) is True for one in distinct):
                    continue
            distinct.append(item)
        return Set(distinct)

    def key(self, value: Any) -> Any:
        """Return what stands for a value as a key."""
        value = plain_enum(value)
        if isinstance(value, External):
            return ("external", value.name)
        if isinstance(value, tuple) and heavy(value):
            return Unknown(("large value",))
        try:
            hash(value)
        except TypeError:
            return Unknown(("key",))
        if isinstance(value, tuple) and any(isinstance(one, Unknown) for one in value):
            return Unknown(needs_of(*value))
        return value

    def show(self, value: Any, *, quoted: bool = False) -> str:
        """Return how Python would print a value."""
        value = plain_enum(value)
        if isinstance(value, str):
            return repr(value) if quoted else value
        if heavy(value):
            return "…"
        if isinstance(value, Unknown):
            return "…"
        if isinstance(value, List):
            inner = "…" if isinstance(value.items, Unknown) else ", ".join(self.show(one, quoted=True) for one in value.items)
            return "{" + inner + "}" if isinstance(value, Set) else f"[{inner}]"
        if isinstance(value, tuple):
            inner = ", ".join(self.show(one, quoted=True) for one in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, Dict):
            pairs = (f"{self.show(key, quoted=True)}: {self.show(one, quoted=True)}" for key, one in value.cells.items())
            return "{" + ", ".join(pairs) + "}"
        if value is None or isinstance(value, (bool, int, float)):
            return str(value)
        if isinstance(value, type):
            return f"<class '{value.__name__}'>"
        return getattr(value, "name", None) or f"<{type(value).__name__}>"
