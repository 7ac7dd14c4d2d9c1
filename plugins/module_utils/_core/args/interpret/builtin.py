# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Python's builtins, and the parts of the standard library that compute from their arguments alone."""

from __future__ import annotations

import ast
import json
import math
import os.path
import re
from collections.abc import Callable
from typing import Any

from .limits import MAX_SIZE, heavy, searchable
from .methods import from_native, method_of, to_native
from .operators import ORDER, arithmetic, equal, formatted, lift, plain_enum, truth
from .values import (
    MISSING,
    NO_NEEDS,
    SMEARED,
    Bound,
    Class,
    Config,
    Dict,
    External,
    Function,
    Instance,
    List,
    Module,
    Native,
    Obj,
    Raised,
    Record,
    Set,
    Unknown,
    View,
    needs_of,
    present,
)

TYPES: dict[str, type] = {
    one.__name__: one for one in (str, int, float, bool, list, dict, set, frozenset, tuple, bytes, object, type, complex)
}
_HOLDS: dict[type, tuple[type, ...]] = {list: (List,), dict: (Dict,), set: (Set,), frozenset: (Set,), type: (Class, type)}


def is_instance(value: Any, kind: Any) -> Any:
    """``isinstance``, three-valued."""
    if isinstance(value, Unknown) or isinstance(kind, Unknown):
        return lift(is_instance, value, kind)
    if isinstance(kind, tuple):
        outcomes = [is_instance(value, one) for one in kind]
        if any(one is True for one in outcomes):
            return True
        return next((one for one in outcomes if isinstance(one, Unknown)), False)
    if isinstance(kind, type):
        if kind is object:
            return True
        if isinstance(value, Set):
            return kind in (set, frozenset)
        if kind in _HOLDS:
            return isinstance(value, _HOLDS[kind])
        if isinstance(plain_enum(value), kind):
            return True
        return False if not isinstance(value, External) or value.name.startswith("torch.") else Unknown((value.name,))
    if isinstance(kind, Class):
        if isinstance(value, View):
            return kind.name == value.kind
        if isinstance(value, Instance) and value.cls is not None:
            return kind in value.cls.mro() or kind.name in value.cls.base_names()
        if isinstance(value, Config):
            return _config_is(value, kind)
        return False if not isinstance(value, External) else Unknown((f"isinstance of {kind.name}",))
    if isinstance(kind, External):
        short = kind.name.rpartition(".")[2]
        if short == "PretrainedConfig" and isinstance(value, Config):
            return True
        if value is None or isinstance(value, (str, int, float, tuple, List, Dict)):
            return (
                short in ("Mapping", "MutableMapping")
                if isinstance(value, Dict)
                else short in ("Sequence", "Iterable") and not isinstance(value, (int, float)) and value is not None
            )
        return Unknown((f"isinstance of {kind.name}",))
    if kind is None:
        return value is None
    return Unknown(("isinstance",))


def _config_is(value: Config, kind: Class) -> Any:
    """A configuration is of the class that names its model_type."""
    for cls in kind.mro():
        for statement in cls.bindings.get("model_type", ()):
            named = getattr(statement, "value", None)
            if isinstance(named, ast.Constant):
                return value.cells.get("model_type") == named.value
    return Unknown((f"isinstance of {kind.name}",))


def _pure(run: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain values: lifted over what its arguments can be."""

    def call(interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        def apply(*plain: Any) -> Any:
            native = [to_native(one) for one in plain]
            if any(one is MISSING or _open(one) for one in native):
                return Unknown(NO_NEEDS.union(*(deep_needs(one) for one in plain)) or {"value"})
            named = {key: to_native(one) for key, one in kwargs.items()}
            if any(one is MISSING for one in named.values()):
                return Unknown(needs_of(*kwargs.values()) or {"value"})
            try:
                return from_native(run(*native, **named))
            except (TypeError, ValueError, ZeroDivisionError, OverflowError, KeyError, IndexError, RecursionError) as exc:
                raise Raised(type(exc).__name__, str(exc), interpreter.here()) from None

        return lift(apply, *args)

    return call


def _open(value: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if isinstance(value, (list, tuple)):
        return any(_open(one) for one in value)
    return isinstance(value, dict) and any(_open(one) for one in value.values())


def deep_needs(value: Any, depth: int = 0) -> frozenset[str]:
    if isinstance(value, Unknown):
        return value.needs
    items: Any = ()
    if isinstance(value, List):
        items = value.items if isinstance(value.items, tuple) else (value.items,)
    elif isinstance(value, tuple):
        items = value
    elif isinstance(value, Dict):
        items = value.cells.values()
    return NO_NEEDS.union(*(deep_needs(one, depth + 1) for one in items)) if items and depth < 4 else NO_NEEDS


def _len(interpreter: Any, value: Any) -> Any:
    def apply(one: Any) -> Any:
        if isinstance(one, (str, tuple, range)):
            return len(one)
        items = interpreter.iterate(one)
        if items is not None:
            return len(items)
        if one is None or isinstance(one, (int, float)):
            raise Raised("TypeError", f"object of type '{type(one).__name__}' has no len()", interpreter.here())
        return Unknown(deep_needs(one) or {"length"})

    return lift(apply, value)


def _extreme(name: str, better: Any) -> Callable[..., Any]:
    def run(interpreter: Any, *args: Any, key: Any = None, default: Any = MISSING) -> Any:
        if len(args) == 1:
            items = interpreter.iterate(args[0])
            if items is None:
                return Unknown(deep_needs(args[0]) or {name})
            if not items:
                if default is not MISSING:
                    return default
                raise Raised("ValueError", f"{name}() arg is an empty sequence", interpreter.here())
        else:
            items = list(args)
        if key is not None:
            return Unknown((name,)) if len(items) > 1 else items[0]
        best = items[0]
        for one in items[1:]:
            best = lift(lambda x, y: _pick(interpreter, better, x, y), best, one)
        return best

    return run


def _pick(interpreter: Any, better: Any, x: Any, y: Any) -> Any:
    a, b = plain_enum(x), plain_enum(y)
    if isinstance(a, Obj) or isinstance(b, Obj):
        return Unknown(("order",))
    if heavy(a) or heavy(b):
        return Unknown(("large value",))
    try:
        return y if ORDER[better](b, a) else x
    except TypeError as exc:
        raise Raised("TypeError", str(exc), interpreter.here()) from None


def _quantify(stop: bool) -> Callable[..., Any]:
    def run(interpreter: Any, value: Any) -> Any:
        items = interpreter.iterate(value)
        if items is None:
            return Unknown(deep_needs(value) or {"items"})
        maybe = None
        for one in items:
            outcome = truth(one)
            if isinstance(outcome, Unknown):
                maybe = outcome
            elif outcome is stop:
                return stop
        return maybe if maybe is not None else not stop

    return run


def _getattr(interpreter: Any, value: Any, name: Any, default: Any = MISSING) -> Any:
    if isinstance(name, Unknown):
        return lift(lambda one: _getattr(interpreter, value, one, default), name)
    if isinstance(value, Unknown):
        return lift(lambda one: _getattr(interpreter, one, name, default), value)
    if default is MISSING:
        return interpreter.attribute(value, name)
    try:
        found = interpreter.find_attribute(value, name)
    except Raised as exc:
        if exc.kind == "AttributeError":
            return default
        raise
    return default if found is MISSING else present(found, default)


def _hasattr(interpreter: Any, value: Any, name: Any) -> Any:
    if isinstance(value, Unknown) or isinstance(name, Unknown):
        return lift(lambda one, attr: _hasattr(interpreter, one, attr), value, name)
    held = value.cells.get(name) if isinstance(value, Instance) else None
    if isinstance(held, Unknown) and held.options and MISSING in held.options:
        return Unknown(held.needs)
    if isinstance(value, External):
        return interpreter.has_external(value, name)
    if isinstance(value, Config):
        return interpreter.has_config(value, name)
    if isinstance(value, Module):
        found = interpreter.module_name(value, name)
        lazy = found is MISSING and interpreter.module_name(value, "__getattr__") is not MISSING
        return Unknown((f"{value.name}.{name}",)) if lazy else found is not MISSING
    try:
        found = interpreter.find_attribute(value, name)
    except Raised as exc:
        if exc.kind == "AttributeError":
            return False
        raise
    return found is not MISSING


def _setattr(interpreter: Any, value: Any, name: Any, new: Any) -> None:
    if isinstance(name, str):
        interpreter.set_attribute(value, name, new, frozenset(interpreter.reads))


def _type(interpreter: Any, value: Any) -> Any:
    if isinstance(value, Unknown):
        return Unknown(value.needs)
    if isinstance(value, View):
        return interpreter.view_class(value)
    if isinstance(value, Instance):
        return value.cls if value.cls is not None else Unknown(("type",))
    for kind, holders in _HOLDS.items():
        if isinstance(value, holders) and kind is not type:
            return set if isinstance(value, Set) else kind
    return type(value) if value is None or isinstance(value, (str, int, float, tuple, bytes)) else Unknown(("type",))


def _collect(kind: type) -> Callable[..., Any]:
    def run(interpreter: Any, *args: Any, **kwargs: Any) -> Any:
        if kind is dict:
            made = Dict()
            for one in args:
                if isinstance(one, Dict):
                    interpreter.update_dict(made, one)
                    made.sites |= one.sites
                else:
                    pairs = interpreter.iterate(one)
                    if pairs is None or not all(isinstance(pair, (tuple, List)) for pair in pairs):
                        made.cells[SMEARED] = Unknown(deep_needs(one) or {"dict"})
                    else:
                        for pair in pairs:
                            key, value = interpreter.iterate(pair) or (None, None)
                            made.cells[interpreter.key(key)] = value
            made.cells |= kwargs
            return made
        if not args:
            return () if kind is tuple else Set() if kind in (set, frozenset) else List()
        items = interpreter.iterate(args[0])
        if items is None:
            return Unknown(deep_needs(args[0]) or {kind.__name__})
        interpreter.spend(len(items))
        if kind is tuple:
            return tuple(items)
        return interpreter.make_set(items) if kind in (set, frozenset) else List(items)

    return run


def _convert(kind: type) -> Callable[..., Any]:
    def run(interpreter: Any, *args: Any, **kwargs: Any) -> Any:
        if not args:
            return kind()

        def apply(*plain: Any) -> Any:
            one = plain_enum(plain[0])
            if kind is bool:
                return truth(plain[0])
            if kind is str:
                if isinstance(one, External):
                    return one.name
                if isinstance(one, Instance) and isinstance(one.cells.get("_raised_"), Raised):
                    return one.cells["_raised_"].message
                return interpreter.show(one)
            if isinstance(one, (Obj, View, External)):
                return Unknown((kind.__name__,))
            try:
                return kind(one, *plain[1:])
            except (TypeError, ValueError, OverflowError) as exc:
                raise Raised(type(exc).__name__, str(exc), interpreter.here()) from None

        return lift(apply, *args)

    return run


def _ordered(interpreter: Any, value: Any, key: Any = None, reverse: Any = False) -> Any:
    items = interpreter.iterate(value)
    if items is None or any(isinstance(one, Unknown) for one in items):
        return Unknown(deep_needs(value) or {"sorted"})
    keys = [plain_enum(one if key is None else interpreter.call(key, [one], {})) for one in items]
    try:
        order = sorted(range(len(items)), key=lambda at: keys[at], reverse=bool(reverse))
    except TypeError:
        return Unknown(("sorted",))
    return List(items[at] for at in order)


def _sum(interpreter: Any, value: Any, start: Any = 0) -> Any:
    items = interpreter.iterate(value)
    if items is None:
        return Unknown(deep_needs(value) or {"sum"})
    total = start
    for one in items:
        total = arithmetic(ast.Add(), total, one)
    return total


def _map(interpreter: Any, function: Any, *values: Any) -> Any:
    columns = [interpreter.iterate(one) for one in values]
    if any(one is None for one in columns):
        return Unknown(NO_NEEDS.union(*(deep_needs(one) for one in values)) or {"map"})
    return List([interpreter.call(function, list(row), {}) for row in zip(*columns, strict=False)])


def _filter(interpreter: Any, function: Any, value: Any) -> Any:
    items = interpreter.iterate(value)
    if items is None:
        return Unknown(deep_needs(value) or {"filter"})
    outcomes = [truth(one if function is None else interpreter.call(function, [one], {})) for one in items]
    if any(isinstance(one, Unknown) for one in outcomes):
        return Unknown(needs_of(*outcomes))
    return List(one for one, keep in zip(items, outcomes, strict=True) if keep)


def _zip(interpreter: Any, *values: Any, **kwargs: Any) -> Any:
    columns = [interpreter.iterate(one) for one in values]
    if any(one is None for one in columns):
        return Unknown(NO_NEEDS.union(*(deep_needs(one) for one in values)) or {"zip"})
    return List(zip(*columns, strict=False))


def _enumerate(interpreter: Any, value: Any, start: Any = 0) -> Any:
    items = interpreter.iterate(value)
    return Unknown(deep_needs(value) or {"enumerate"}) if items is None else List(enumerate(items, start))


def _range(interpreter: Any, *args: Any) -> Any:
    def apply(*plain: Any) -> Any:
        try:
            made = range(*(plain_enum(one) for one in plain))
        except (TypeError, ValueError) as exc:
            raise Raised(type(exc).__name__, str(exc), interpreter.here()) from None
        return made if len(made) <= MAX_SIZE else Unknown(("long range",))

    return lift(apply, *args)


def _next(interpreter: Any, value: Any, default: Any = MISSING) -> Any:
    items = interpreter.iterate(value)
    if items is None:
        return Unknown(deep_needs(value) or {"next"})
    if items:
        return items[0]
    if default is MISSING:
        raise Raised("StopIteration", "", interpreter.here())
    return default


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": _len,
    "max": _extreme("max", ast.Gt),
    "min": _extreme("min", ast.Lt),
    "any": _quantify(True),
    "all": _quantify(False),
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "isinstance": lambda i, value, kind: is_instance(value, kind),
    "issubclass": lambda i, value, kind: (
        (kind in value.mro() or kind.name in value.base_names())
        if isinstance(value, Class) and isinstance(kind, Class)
        else Unknown(("issubclass",))
    ),
    "callable": lambda i, value: lift(lambda one: isinstance(one, (Function, Bound, Native, Class, type)), value),
    "sorted": _ordered,
    "sum": _sum,
    "map": _map,
    "filter": _filter,
    "zip": _zip,
    "enumerate": _enumerate,
    "range": _range,
    "next": _next,
    "iter": lambda i, value: value,
    "reversed": lambda i, value: (
        Unknown(deep_needs(value) or {"reversed"}) if i.iterate(value) is None else List(reversed(i.iterate(value)))
    ),
    "id": lambda i, value: Unknown(("id",)),
    "print": lambda i, *a, **k: None,
    "pow": lambda i, base, exponent, modulus=None: (
        arithmetic(ast.Pow(), base, exponent) if modulus is None else Unknown(("pow",))
    ),
    "repr": lambda i, value: lift(lambda one: i.show(one, quoted=True), value),
    "vars": lambda i, value: Dict(dict(value.cells)) if isinstance(value, Instance) else Unknown(("vars",)),
    "property": lambda i, *a: Unknown(("property",)),
    "hash": lambda i, value: Unknown(("hash",)),
}
for _kind in (list, tuple, set, frozenset, dict):
    _FUNCTIONS[_kind.__name__] = _collect(_kind)
for _scalar in (str, int, float, bool):
    _FUNCTIONS[_scalar.__name__] = _convert(_scalar)
_PURE: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "round": round,
    "divmod": divmod,
    "ord": ord,
    "chr": chr,
    "bin": bin,
    "hex": hex,
    "format": lambda value, spec="": formatted(value, spec),
}


def _searched(search: Callable[..., Any], pattern: Any, *args: Any, **how: Any) -> Any:
    text = args[-1]
    if isinstance(pattern, str) and isinstance(text, str) and not searchable(pattern, text):
        return Unknown(("search",))
    try:
        return search(pattern, *args, **how)
    except re.error:
        return Unknown(("pattern",))


def _native(name: str, run: Callable[..., Any]) -> Native:
    return Native(name, lambda i, args, kwargs: run(i, *args, **kwargs))


NATIVES: dict[str, Any] = {
    **{name: _native(name, run) for name, run in _FUNCTIONS.items() if name not in TYPES},
    **{name: Native(name, _pure(run)) for name, run in _PURE.items()},
}
# Modules of the standard library, by dotted name, that compute from their arguments alone.
PURE_EXTERNAL: dict[str, Callable[..., Any]] = {
    **{
        f"math.{name}": getattr(math, name)
        for name in (
            "ceil",
            "floor",
            "sqrt",
            "log",
            "log2",
            "gcd",
            "lcm",
            "prod",
            "isclose",
            "isfinite",
            "isinf",
            "isnan",
            "trunc",
            "fabs",
            "pow",
            "exp",
        )
    },
    **{f"os.path.{name}": getattr(os.path, name) for name in ("join", "basename", "dirname", "splitext", "normpath", "split")},
    "json.loads": json.loads,
    "json.dumps": json.dumps,
    "orjson.loads": json.loads,
    "re.escape": re.escape,
    "re.sub": lambda pattern, new, text, **how: _searched(re.sub, pattern, new, text, **how),
    "re.split": lambda pattern, text, **how: _searched(re.split, pattern, text, **how),
    "re.findall": lambda pattern, text, **how: _searched(re.findall, pattern, text, **how),
}


def call_type(interpreter: Any, kind: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if kind is type:
        return _type(interpreter, args[0]) if len(args) == 1 else Unknown(("type()",))
    run = _FUNCTIONS.get(kind.__name__)
    return run(interpreter, *args, **kwargs) if run else Unknown((kind.__name__,))


def pure_external(interpreter: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _pure(PURE_EXTERNAL[name])(interpreter, args, kwargs)


def lookup(name: str) -> Any:
    """Return a builtin by name, MISSING where Python has none such that is supported."""
    if name in TYPES:
        return TYPES[name]
    if name in NATIVES:
        return NATIVES[name]
    if name in ("NotImplemented", "Ellipsis"):
        return External(name)
    if name in ("__name__", "__file__"):
        return name
    import builtins

    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return External(f"builtins.{name}")
    return MISSING


def is_exception(kind: str, names: list[str]) -> bool:
    """Return whether an exception of that name is caught under one of the names."""
    import builtins

    if {"Exception", "BaseException"} & set(names) or kind in names:
        return True
    raised = getattr(builtins, kind, None)
    for name in names:
        caught = getattr(builtins, name, None)
        if isinstance(raised, type) and isinstance(caught, type) and issubclass(raised, caught):
            return True
    return kind == "JSONDecodeError" and "ValueError" in names


__all__ = [
    "NATIVES",
    "Module",
    "Record",
    "call_type",
    "equal",
    "is_exception",
    "is_instance",
    "lookup",
    "method_of",
    "pure_external",
]
