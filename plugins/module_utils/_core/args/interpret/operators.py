# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Operators on values that may be unknown: three-valued truth, comparison, arithmetic, lifted over what a value can be."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import product
from typing import Any

from .limits import MAX_BITS, MAX_SIZE, WIDE, heavy
from .values import (
    MISSING,
    SMEARED,
    Class,
    Dict,
    External,
    Function,
    Instance,
    List,
    Obj,
    Raised,
    Set,
    Unknown,
    View,
    same,
    unknown,
)

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
SIGN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_PLAIN_ENUMS = frozenset({"str", "int", "IntEnum", "StrEnum", "enum.IntEnum", "enum.StrEnum", "IntFlag"})
MAX_COMBINATIONS = 32


def lift(apply: Callable[..., Any], *values: Any) -> Any:
    """Apply a pure function to every combination of what the values can be; unknown where one of them is open.

    A combination on which the function raises is a path that ends; if all do, the first exception is passed on.
    """
    if not any(isinstance(value, Unknown) for value in values):
        return apply(*values)
    needs = frozenset().union(*(value.needs for value in values if isinstance(value, Unknown)))
    ranges: list[tuple[Any, ...]] = []
    size = 1
    for value in values:
        options = value.options if isinstance(value, Unknown) else (value,)
        if options is None:
            return Unknown(needs)
        ranges.append(tuple(option for option in options if option is not MISSING))
        size *= len(options)
    if size > MAX_COMBINATIONS:
        return Unknown(needs)
    results: list[Any] = []
    failed: Raised | None = None
    for combination in product(*ranges):
        try:
            result = apply(*combination)
        except Raised as exc:
            failed = failed or exc.with_traceback(None)
            continue
        if isinstance(result, Unknown):
            needs |= result.needs
            if result.options is None:
                return Unknown(needs)
            results += result.options
        else:
            results.append(result)
    if not results:
        if failed is not None:
            raise failed
        return Unknown(needs)
    return unknown(needs, results)


def plain_enum(value: Any) -> Any:
    """Return the value of an enum member that is also a str or int, anything else as it is."""
    member = isinstance(value, Instance) and value.cls is not None and "_value_" in value.cells
    return value.cells["_value_"] if member and value.cls.base_names() & _PLAIN_ENUMS else value


def truth(value: Any) -> bool | Unknown:
    """Return whether a value counts as true; an Unknown where that is open."""
    if isinstance(value, Unknown):
        if value.options is None:
            return value
        outcomes = [truth(option) for option in value.options if option is not MISSING]
        if outcomes and all(outcome is True for outcome in outcomes):
            return True
        if outcomes and all(outcome is False for outcome in outcomes):
            return False
        for outcome in outcomes:
            if isinstance(outcome, Unknown):
                return Unknown(value.needs | outcome.needs)
        return value
    if isinstance(value, List):
        return truth(value.items)
    if isinstance(value, Dict):
        return dict_size_truth(value)
    value = plain_enum(value)
    if isinstance(value, (Obj, View, Function, External)):
        return True
    try:
        return bool(value)
    except Exception:
        return Unknown(("truth of a value",))


def dict_size_truth(value: Dict) -> bool | Unknown:
    maybe: Unknown | None = None
    for key, item in value.cells.items():
        if key is SMEARED or (isinstance(item, Unknown) and item.options is not None and MISSING in item.options):
            maybe = item
        else:
            return True
    return maybe if maybe is not None else False


def equal(a: Any, b: Any) -> Any:
    """``a == b``, three-valued."""
    return lift(_equal, a, b)


def _equal(a: Any, b: Any) -> Any:
    a, b = plain_enum(a), plain_enum(b)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return equal(a, b)
    if a is b:
        return True
    if isinstance(a, (tuple, List)) and isinstance(b, (tuple, List)):
        if type(a) is not type(b):
            return False
        return Unknown(("large value",)) if heavy(a) or heavy(b) else _equal_items(a, b)
    if isinstance(a, Dict) and isinstance(b, Dict):
        return Unknown(("large value",)) if heavy(a) or heavy(b) else _equal_cells(a.cells, b.cells)
    if isinstance(a, Instance) and isinstance(b, Instance):
        if a.cls is not b.cls or a.cls is None:
            return False
        if "_value_" in a.cells or "_value_" in b.cells:
            return same(a.cells.get("_value_"), b.cells.get("_value_"))
        return _equal_cells(a.cells, b.cells)
    if isinstance(a, External) and isinstance(b, External):
        return True if a.name == b.name else _distinct(a, b)
    if isinstance(a, External) or isinstance(b, External):
        other = b if isinstance(a, External) else a
        if other is None:
            return False
        return Unknown((a.name if isinstance(a, External) else b.name,))
    if isinstance(a, (Obj, View)) or isinstance(b, (Obj, View)):
        return False
    try:
        return bool(a == b)
    except Exception:
        return Unknown(("comparison",))


def _distinct(a: External, b: External) -> Any:
    """Two names of torch (its dtypes) are two things; of anything else we cannot tell."""
    return False if a.name.startswith("torch.") and b.name.startswith("torch.") else Unknown((f"{a.name} == {b.name}",))


def _equal_items(a: Any, b: Any) -> Any:
    left = a if isinstance(a, tuple) else a.items
    right = b if isinstance(b, tuple) else b.items
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(
            (left.needs if isinstance(left, Unknown) else frozenset())
            | (right.needs if isinstance(right, Unknown) else frozenset())
        )
    if type(a).__name__ == "Set":
        return _equal_sets(left, right)
    if len(left) != len(right):
        return False
    return _all([equal(x, y) for x, y in zip(left, right, strict=True)])


def _equal_sets(left: tuple[Any, ...], right: tuple[Any, ...]) -> Any:
    try:
        return set(left) == set(right) if not any(isinstance(x, Unknown) for x in left + right) else Unknown(("set",))
    except TypeError:
        return Unknown(("set",))


def _equal_cells(a: dict[Any, Any], b: dict[Any, Any]) -> Any:
    outcomes = []
    for key in a.keys() | b.keys():
        if key not in a or key not in b:
            item = a.get(key, b.get(key))
            if isinstance(item, Unknown):
                outcomes.append(Unknown(item.needs))
                continue
            return False
        outcomes.append(equal(a[key], b[key]))
    return _all(outcomes)


def _all(outcomes: list[Any]) -> Any:
    if any(outcome is False for outcome in outcomes):
        return False
    for outcome in outcomes:
        if isinstance(outcome, Unknown):
            return outcome
    return True


def negate(value: Any) -> Any:
    value = truth(value)
    return value if isinstance(value, Unknown) else not value


def identical(a: Any, b: Any) -> Any:
    """``a is b``, three-valued."""
    return lift(_identical, a, b)


def _identical(a: Any, b: Any) -> Any:
    if isinstance(a, External) and isinstance(b, External):
        return True if a.name == b.name else _distinct(a, b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, External) and not (other is None or isinstance(other, (bool, int, str, Class))):
            return Unknown((one.name,))
    if isinstance(a, (tuple, str, int, float)) and not isinstance(a, bool):
        return same(a, b)
    if isinstance(a, Instance) and isinstance(b, Instance) and "_value_" in a.cells and "_value_" in b.cells:
        return a.cls is b.cls and same(a.cells["_value_"], b.cells["_value_"])
    return a is b


def contains(item: Any, container: Any) -> Any:
    """``item in container``, three-valued."""
    if isinstance(container, Unknown):
        return lift(contains, item, container)
    if isinstance(container, Dict):
        if isinstance(item, Unknown):
            return lift(lambda one: contains(one, container), item)
        held = container.cells.get(_key(item), MISSING)
        if held is MISSING:
            return Unknown(container.cells[SMEARED].needs) if SMEARED in container.cells else False
        maybe = isinstance(held, Unknown) and held.options is not None and MISSING in held.options
        return Unknown(held.needs) if maybe else True
    if isinstance(container, str):
        return lift(lambda one: _in_text(one, container), item)
    items = container.items if isinstance(container, List) else container
    if isinstance(items, (range, dict, frozenset, set)):
        items = tuple(items)
    if isinstance(items, Unknown):
        return Unknown(items.needs)
    if not isinstance(items, tuple):
        if items is None:
            raise Raised("TypeError", "argument of type 'NoneType' is not iterable", "")
        return Unknown((f"contents of {getattr(items, 'name', type(items).__name__)}",))
    doubt: Unknown | None = None
    for one in items:
        outcome: Any = equal(item, one)
        if outcome is True:
            return True
        if isinstance(outcome, Unknown):
            doubt = outcome if doubt is None else Unknown(doubt.needs | outcome.needs)
    if doubt is None:
        return False
    if isinstance(item, Unknown) and item.options is not None:
        return lift(lambda one: contains(one, container), item)
    return doubt


def _in_text(item: Any, text: str) -> Any:
    item = plain_enum(item)
    if isinstance(item, str):
        return item in text
    raise Raised("TypeError", f"'in <string>' requires string as left operand, not {type(item).__name__}", "")


def _key(value: Any) -> Any:
    """Return what stands for a value as a key of a dict."""
    value = plain_enum(value)
    if isinstance(value, External):
        return ("external", value.name)
    try:
        hash(value)
    except TypeError:
        return MISSING
    return value


def compare(op: ast.cmpop, a: Any, b: Any) -> Any:
    kind = type(op)
    if kind is ast.Eq:
        return equal(a, b)
    if kind is ast.NotEq:
        return negate(equal(a, b))
    if kind is ast.Is:
        return identical(a, b)
    if kind is ast.IsNot:
        return negate(identical(a, b))
    if kind is ast.In:
        return contains(a, b)
    if kind is ast.NotIn:
        return negate(contains(a, b))
    return lift(lambda x, y: _ordered(kind, x, y), a, b)


def _ordered(kind: type[ast.cmpop], a: Any, b: Any) -> Any:
    a, b = plain_enum(a), plain_enum(b)
    for value in (a, b):
        if isinstance(value, Unknown):
            return lift(lambda x, y: _ordered(kind, x, y), a, b)
    if isinstance(a, Set) and isinstance(b, Set):
        return _subset(kind, a, b)
    for value in (a, b):
        if isinstance(value, (Obj, View, External)):
            return Unknown((f"order of {getattr(value, 'name', type(value).__name__)}",))
    if isinstance(a, tuple) and isinstance(b, tuple) and any(isinstance(x, (Unknown, Obj)) for x in a + b):
        return Unknown(frozenset().union(*(x.needs for x in a + b if isinstance(x, Unknown))))
    if heavy(a) or heavy(b):
        return Unknown(("large value",))
    try:
        return ORDER[kind](a, b)
    except TypeError:
        names = (type(a).__name__, type(b).__name__)
        raise Raised(
            "TypeError", f"'{SIGN[kind]}' not supported between instances of '{names[0]}' and '{names[1]}'", ""
        ) from None


def _subset(kind: type[ast.cmpop], a: Set, b: Set) -> Any:
    if kind in (ast.Gt, ast.GtE):
        return _subset({ast.Gt: ast.Lt, ast.GtE: ast.LtE}[kind], b, a)
    if isinstance(a.items, Unknown):
        return Unknown(a.items.needs)
    within = _all([contains(one, b) for one in a.items])
    return within if kind is ast.LtE or within is not True else negate(_equal_items(a, b))


def arithmetic(op: ast.operator, a: Any, b: Any) -> Any:
    return lift(lambda x, y: _arithmetic(op, x, y), a, b)


def _arithmetic(op: ast.operator, a: Any, b: Any) -> Any:
    a, b = plain_enum(a), plain_enum(b)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return arithmetic(op, a, b)
    if isinstance(a, List) and isinstance(b, List):
        return _lists(op, a, b)
    if isinstance(a, List) and isinstance(b, int) and isinstance(op, ast.Mult):
        return List(a.items * b) if isinstance(a.items, tuple) and len(a.items) * b < MAX_SIZE else Unknown(("long list",))
    if isinstance(a, Dict) and isinstance(b, Dict) and isinstance(op, ast.BitOr):
        merged = Dict({**a.cells, **b.cells})
        merged.sites = {**a.sites, **b.sites}
        return merged
    if isinstance(op, ast.Div) and isinstance(a, Instance) and isinstance(b, str) and "_join_" in a.cells:
        return a.cells["_join_"](b)
    if isinstance(a, (Obj, View, External, Function)) or isinstance(b, (Obj, View, External, Function)):
        return Unknown((f"{getattr(a, 'name', type(a).__name__)} {type(op).__name__} {getattr(b, 'name', type(b).__name__)}",))
    if isinstance(op, ast.Mod) and isinstance(a, str):
        try:
            return Unknown(("large value",)) if WIDE.search(a) else a % b
        except (TypeError, ValueError):
            return Unknown(("text",))
    if _too_large(op, a, b):
        return Unknown(("large value",))
    try:
        return BINARY[type(op)](a, b)
    except ZeroDivisionError as exc:
        raise Raised("ZeroDivisionError", str(exc), "") from None
    except TypeError as exc:
        raise Raised("TypeError", str(exc), "") from None
    except (KeyError, ValueError, OverflowError):
        return Unknown(("arithmetic",))


def formatted(value: Any, spec: str) -> Any:
    """``format(value, spec)``; unknown where that would be padded to a size no message has."""
    return Unknown(("large value",)) if WIDE.search(spec) else format(value, spec)


def _too_large(op: ast.operator, a: Any, b: Any) -> bool:
    """Whether computing would cost more than any setting is worth: text and numbers grown by hostile or mistaken source."""
    if isinstance(a, (str, tuple)) or isinstance(b, (str, tuple)):
        size = len(a) if isinstance(a, (str, tuple)) else a
        other = len(b) if isinstance(b, (str, tuple)) else b
        if not isinstance(size, int) or not isinstance(other, int):
            return False
        return (size * other if isinstance(op, ast.Mult) else size + other) > MAX_SIZE
    if not isinstance(a, int) or not isinstance(b, int):
        return False
    if isinstance(op, ast.Pow):
        return a.bit_length() * abs(b) > MAX_BITS
    if isinstance(op, ast.LShift):
        return b > MAX_BITS
    return isinstance(op, ast.Mult) and a.bit_length() + b.bit_length() > MAX_BITS


def _lists(op: ast.operator, a: List, b: List) -> Any:
    left, right = a.items, b.items
    if isinstance(left, Unknown):
        return Unknown(left.needs)
    if isinstance(right, Unknown):
        return Unknown(right.needs)
    kind = type(a)
    if isinstance(op, ast.Add):
        return kind(left + right) if len(left) + len(right) <= MAX_SIZE else Unknown(("large value",))
    inside = [contains(one, b) for one in left]
    for one in inside:
        if isinstance(one, Unknown):
            return Unknown(one.needs)
    if isinstance(op, ast.BitOr):
        outside = [contains(one, a) for one in right]
        return kind(left + tuple(one for one, seen in zip(right, outside, strict=True) if seen is False))
    if isinstance(op, ast.BitAnd):
        return kind(one for one, seen in zip(left, inside, strict=True) if seen)
    if isinstance(op, ast.Sub):
        return kind(one for one, seen in zip(left, inside, strict=True) if not seen)
    return Unknown(("list",))
