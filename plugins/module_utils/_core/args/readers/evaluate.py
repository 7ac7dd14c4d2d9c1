# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A value for an expression of the release's source, where the source alone decides it; UNKNOWN otherwise.

Constants, lists, names followed through imports, enums, class constants, and calls of the release's own small pure functions
(choice lists, argparse converters). No attribute of a real object is touched beyond plain containers, text and numbers.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ..flags import UNKNOWN
from ..source import SourceTree
from . import limits
from .names import ClassRef, EnumMember, External, FunctionRef, Instance, ModuleRef, Names

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: limits.add,
    ast.Sub: operator.sub,
    ast.Mult: limits.multiply,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.LShift: limits.shift,
    ast.BitOr: operator.or_,
    ast.Pow: limits.power,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_BUILTINS: dict[str, Any] = {
    fn.__name__: fn
    for fn in (list, tuple, set, frozenset, dict, sorted, len, str, int, float, bool, min, max, isinstance, type, abs, repr)
}
_CONTAINERS: tuple[type[Any], ...] = (str, list, tuple, dict, type({}.keys()), type({}.values()), type({}.items()))
_PLAIN = (*_CONTAINERS, int, float, bool, Decimal, re.Match)
_EXTERNAL: dict[str, Callable[..., Any]] = {
    "json.loads": json.loads,
    "orjson.loads": json.loads,
    "re.fullmatch": limits.fullmatch,
    "decimal.Decimal": Decimal,
}
# sys.maxsize of a 64-bit machine: SGLang runs on no other.
_EXTERNAL_VALUES: dict[str, Any] = {"argparse.SUPPRESS": argparse.SUPPRESS, "sys.maxsize": (1 << 63) - 1}
_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")


class OrderedSet(list[Any]):
    """A set that keeps the written order, so that a message which lists it does not change from run to run."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(dict.fromkeys(items))

    def add(self, item: Any) -> None:
        if item not in self:
            self.append(item)


class Evaluator:
    """Evaluate expressions of one release."""

    def __init__(self, tree: SourceTree, run: Callable[[Evaluator, FunctionRef, list[Any]], Any] | None = None) -> None:
        self.tree = tree
        self.names = Names(tree, self.static)
        self._run = run
        # Expressions looked at since the work began that may take limits.STEPS of them; see `afresh`.
        self.steps = 0
        self.depth = 0
        self.cut_short = 0
        self._members: dict[ast.ClassDef, dict[str, Any]] = {}

    def afresh(self) -> None:
        """Begin a piece of work with a budget of its own, so that a source made to run for ever ends in UNKNOWN."""
        self.steps = 0

    def value(self, node: ast.expr, rel: str, local: dict[str, Any] | None = None) -> Any:
        """Return the value of an expression standing in a file, UNKNOWN where it is not decided."""
        local = {} if local is None else local
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        self.steps += 1
        if self.steps > limits.STEPS or self.depth > limits.DEPTH:
            self.cut_short += 1
            return UNKNOWN
        if method is None:
            return UNKNOWN
        self.depth += 1
        try:
            return method(node, rel, local)
        finally:
            self.depth -= 1

    def static(self, node: ast.expr, rel: str, local: dict[str, Any] | None = None) -> Any:
        """Return the value as `value` does, and UNKNOWN also where evaluating it would raise."""
        try:
            return self.value(node, rel, local)
        except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, argparse.ArgumentTypeError):
            return UNKNOWN

    def default(self, node: ast.expr, rel: str, local: dict[str, Any] | None = None) -> Any:
        """Return a value as `static` does; one known by name only is UNKNOWN, so that no name is taken for a default."""
        value = self.static(node, rel, local)
        return UNKNOWN if isinstance(value, (External, FunctionRef, ClassRef, ModuleRef)) else value

    def plain(self, node: ast.expr, rel: str, local: dict[str, Any]) -> Any:
        """Return a value that may be compared or asked for its truth; one known by name only is UNKNOWN."""
        value = self.value(node, rel, local)
        return UNKNOWN if isinstance(value, (External, FunctionRef, ClassRef, ModuleRef)) else value

    def _constant(self, node: ast.Constant, rel: str, local: dict[str, Any]) -> Any:
        return node.value

    def _name(self, node: ast.Name, rel: str, local: dict[str, Any]) -> Any:
        if node.id in local:
            return local[node.id]
        if self.names.binding(rel, node.id) is not None:
            return self.names.get(rel, node.id)
        return _BUILTINS.get(node.id, UNKNOWN)

    def _sequence(self, nodes: list[ast.expr], rel: str, local: dict[str, Any]) -> list[Any] | None:
        """Return the elements; None where a starred one is unknown. A single unknown element stays UNKNOWN in place."""
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.value(node.value, rel, local)
                items = self.iterate(inner)
                if items is None:
                    return None
                out.extend(items)
            else:
                out.append(self.value(node, rel, local))
            if len(out) > limits.ITEMS:
                return None
        return out

    def _list(self, node: ast.List, rel: str, local: dict[str, Any]) -> Any:
        items = self._sequence(node.elts, rel, local)
        return UNKNOWN if items is None else items

    def _tuple(self, node: ast.Tuple, rel: str, local: dict[str, Any]) -> Any:
        items = self._sequence(node.elts, rel, local)
        return UNKNOWN if items is None else tuple(items)

    def _set(self, node: ast.Set, rel: str, local: dict[str, Any]) -> Any:
        items = self._sequence(node.elts, rel, local)
        return UNKNOWN if items is None else OrderedSet(items)

    def _dict(self, node: ast.Dict, rel: str, local: dict[str, Any]) -> Any:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(value, rel, local)
            if key is None:
                if not isinstance(inner, dict):
                    return UNKNOWN
                out.update(inner)
                continue
            name = self.value(key, rel, local)
            if name is UNKNOWN:
                return UNKNOWN
            out[name] = inner
        return out

    def _binop(self, node: ast.BinOp, rel: str, local: dict[str, Any]) -> Any:
        left, right = self.plain(node.left, rel, local), self.plain(node.right, rel, local)
        return _apply(_BINARY.get(type(node.op)), left, right)

    def _compare(self, node: ast.Compare, rel: str, local: dict[str, Any]) -> Any:
        left = self.plain(node.left, rel, local)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.plain(right_node, rel, local)
            result = _apply(_COMPARE.get(type(op)), left, right)
            if result is UNKNOWN or not result:
                return result
            left = right
        return True

    def _boolop(self, node: ast.BoolOp, rel: str, local: dict[str, Any]) -> Any:
        stop = isinstance(node.op, ast.Or)
        unknown = False
        value: Any = None
        for part in node.values:
            value = self.plain(part, rel, local)
            if value is UNKNOWN:
                unknown = True
            elif bool(value) is stop:
                return UNKNOWN if unknown else value
        return UNKNOWN if unknown else value

    def _unaryop(self, node: ast.UnaryOp, rel: str, local: dict[str, Any]) -> Any:
        value = self.plain(node.operand, rel, local)
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) and isinstance(value, (int, float)) else UNKNOWN

    def _ifexp(self, node: ast.IfExp, rel: str, local: dict[str, Any]) -> Any:
        test = self.plain(node.test, rel, local)
        if test is UNKNOWN:
            return UNKNOWN
        return self.value(node.body if test else node.orelse, rel, local)

    def _joinedstr(self, node: ast.JoinedStr, rel: str, local: dict[str, Any]) -> Any:
        out = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, rel, local)
                if value is UNKNOWN or part.format_spec is not None:
                    return UNKNOWN
                out.append(repr(value) if part.conversion == ord("r") else str(value))
            elif isinstance(part, ast.Constant):
                out.append(str(part.value))
        return limits.sized("".join(out))

    def _subscript(self, node: ast.Subscript, rel: str, local: dict[str, Any]) -> Any:
        base, index = self.value(node.value, rel, local), self.value(node.slice, rel, local)
        if isinstance(base, (list, tuple, dict, str)) and index is not UNKNOWN:
            return _apply(operator.getitem, base, index)
        return UNKNOWN

    def _listcomp(self, node: ast.ListComp, rel: str, local: dict[str, Any]) -> Any:
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            return UNKNOWN
        loop = node.generators[0]
        items = self.iterate(self.value(loop.iter, rel, local))
        if items is None:
            return UNKNOWN
        out = []
        for item in items:
            inner = {**local, node.generators[0].target.id: item}
            tests = [self.plain(test, rel, inner) for test in loop.ifs]
            if any(test is UNKNOWN for test in tests):
                return UNKNOWN
            if all(tests):
                out.append(self.value(node.elt, rel, inner))
        return out

    def _attribute(self, node: ast.Attribute, rel: str, local: dict[str, Any]) -> Any:
        return self._attribute_of(self.value(node.value, rel, local), node)

    def _attribute_of(self, base: Any, node: ast.Attribute) -> Any:
        if isinstance(base, External):
            dotted = f"{base.dotted}.{node.attr}"
            return _EXTERNAL_VALUES.get(dotted, External(dotted))
        if isinstance(base, type) and node.attr == "__name__":
            return base.__name__
        if isinstance(base, ModuleRef):
            return self.names.get(base.rel, node.attr)
        if isinstance(base, Instance):
            return base.values.get(node.attr, UNKNOWN)
        if isinstance(base, EnumMember):
            return {"name": base.name, "value": base.value}.get(node.attr, UNKNOWN)
        if isinstance(base, ClassRef):
            return self.member(base, node.attr)
        if isinstance(base, FunctionRef) and node.attr == "__doc__":
            return ast.get_docstring(base.node, clean=False)
        return UNKNOWN

    def member(self, cls: ClassRef, name: str) -> Any:
        """Return a constant of a class body, an enum member for an enum; names may refer to earlier ones."""
        scope = self._members.get(cls.node)
        if scope is None:
            scope, cuts = {}, self.cut_short
            for key, expression in cls.members():
                scope[key] = self.value(expression, cls.rel, scope)
            if self.cut_short == cuts:
                self._members[cls.node] = scope
        if name not in scope:
            return UNKNOWN
        return EnumMember(name, scope[name]) if _is_enum(cls) else scope[name]

    def iterate(self, value: Any) -> list[Any] | None:
        """Return the items of a container or the members of an enum; None where they are not known."""
        if isinstance(value, ClassRef) and _is_enum(value):
            return [self.member(value, name) for name, dummy in value.members() if not name.startswith("_")]
        return list(value) if isinstance(value, _CONTAINERS) else None

    def _call(self, node: ast.Call, rel: str, local: dict[str, Any]) -> Any:
        args = self._sequence(node.args, rel, local)
        if args is None or any(key.arg is None for key in node.keywords):
            return UNKNOWN
        kwargs = {str(key.arg): self.value(key.value, rel, local) for key in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, rel, local)
            if isinstance(owner, _PLAIN):
                return _method(owner, node.func.attr, args, kwargs)
            if isinstance(owner, Instance) and node.func.attr == "error":  # ArgumentParser.error
                raise argparse.ArgumentTypeError(str(args[0]))
            return self.call(self._attribute_of(owner, node.func), args, kwargs)
        if isinstance(node.func, ast.Name) and args and isinstance(args[0], Instance):
            return _on_instance(node.func.id, args[0], args[1:])
        function = self.value(node.func, rel, local)
        return self.call(function, args, kwargs)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, External):
            if function.dotted == "sys.modules.get":
                return None  # a process that has just started: no plugin has imported anything
            function = _EXTERNAL.get(function.dotted)
        if isinstance(function, FunctionRef) and self._run is not None and not kwargs:
            return self._run(self, function, args)
        if function in (set, frozenset):
            function = OrderedSet
        if function in (list, tuple, OrderedSet, sorted) and len(args) == 1 and not kwargs:
            items = self.iterate(args[0])
            return UNKNOWN if items is None else function(items)
        if function in _BUILTINS.values() or function in _EXTERNAL.values():
            if any(arg is UNKNOWN for arg in args) or any(value is UNKNOWN for value in kwargs.values()):
                return UNKNOWN
            return function(*args, **kwargs)
        return UNKNOWN


def _on_instance(function: str, owner: Instance, args: list[Any]) -> Any:
    if function == "setattr" and len(args) == 2:
        owner.values[args[0]] = args[1]
        return None
    return owner.values.get(args[0], UNKNOWN) if function == "getattr" and len(args) == 1 else UNKNOWN


def _is_enum(cls: ClassRef) -> bool:
    return any(base in _ENUMS for base in cls.bases())


def _method(owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if name not in limits.METHODS or any(arg is UNKNOWN for arg in args) or kwargs:
        return UNKNOWN
    method = getattr(owner, name, None)
    if method is None or not limits.fits(name, owner, *args):
        return UNKNOWN
    return method(*args)


def _apply(function: Callable[[Any, Any], Any] | None, left: Any, right: Any) -> Any:
    if function is None or left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    try:
        return function(left, right)
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, OverflowError):
        return UNKNOWN
