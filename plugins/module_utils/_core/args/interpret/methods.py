# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Methods of text, lists, sets and dicts of the program under interpretation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .limits import MAX_SIZE, WIDE, heavy
from .operators import contains, equal, lift, negate, plain_enum
from .values import (
    MISSING,
    NO_NEEDS,
    SMEARED,
    Dict,
    List,
    Native,
    Raised,
    Set,
    Stash,
    Unknown,
    join,
    needs_of,
    options_of,
    present,
    unknown,
)

# Text longer than this is no setting.
MAX_TEXT = 2_000_000


def method_of(value: Any, name: str) -> Any:
    """Return a bound method as something to call, MISSING where the value certainly has none."""
    value = plain_enum(value)
    if isinstance(value, str):
        has = hasattr(str, name) and not name.startswith("__")
        return Native(f"str.{name}", lambda i, a, k: _text(i, value, name, a, k)) if has else MISSING
    if isinstance(value, bytes):
        return Native(f"bytes.{name}", lambda i, a, k: Unknown(("bytes",)))
    if isinstance(value, (bool, int, float)):
        if name in ("real", "imag"):
            return getattr(value, name)
        has = hasattr(value, name) and not name.startswith("__")
        return Native(f"number.{name}", lambda i, a, k: _number(value, name, [*a, *k.values()])) if has else MISSING
    if value is None:
        return MISSING
    if isinstance(value, tuple):
        table: dict[str, Callable[..., Any]] = {"index": _index, "count": _count}
    elif isinstance(value, Stash):
        table = _STASH
    elif isinstance(value, Set):
        table = _SETS
    elif isinstance(value, List):
        table = _LISTS
    elif isinstance(value, Dict):
        table = _DICTS
    else:
        return Unknown((f"{type(value).__name__}.{name}",))
    if name in table:
        return Native(name, lambda i, a, k: table[name](i, value, *a, **k))
    kind = next((kind for holder, kind in _KINDS if isinstance(value, holder)), tuple)
    has = hasattr(kind, name) and not name.startswith("__")
    return Native(name, lambda i, a, k: _opened(i, value)) if has else MISSING


def _number(value: Any, name: str, args: list[Any]) -> Any:
    return Unknown(needs_of(*args) or {name}) if args else from_native(getattr(value, name)())


def _opened(interpreter: Any, value: Any) -> Any:
    """A method that is not followed: what it gives is unknown, and so is what it leaves behind."""
    if isinstance(value, List):
        interpreter.write(value, "items", Unknown(("items",)))
    elif isinstance(value, Dict):
        interpreter.write(value, SMEARED, Unknown(("items",)))
        for key in [key for key in value.cells if key is not SMEARED]:
            interpreter.write(value, key, Unknown(("items",)))
    return Unknown(("items",))


def _text(interpreter: Any, text: str, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    names = list(kwargs)

    def apply(*plain: Any) -> Any:
        native = [to_native(one) for one in plain]
        if any(one is MISSING for one in native) or _grows(text, name, native):
            return Unknown(("text",))
        given = len(args)
        try:
            return _from_native(getattr(text, name)(*native[:given], **dict(zip(names, native[given:], strict=True))))
        except (TypeError, ValueError, IndexError, KeyError) as exc:
            raise Raised(type(exc).__name__, str(exc), interpreter.here()) from None

    if any(
        isinstance(one, List) and isinstance(one.items, tuple) and any(isinstance(x, Unknown) for x in one.items) for one in args
    ):
        return Unknown(
            NO_NEEDS.union(*(needs_of(*one.items) for one in args if isinstance(one, List) and isinstance(one.items, tuple)))
        )
    return lift(apply, *args, *kwargs.values())


def _grows(text: str, name: str, args: list[Any]) -> bool:
    """Whether a method of a text might make one of a size no setting has."""
    if name.startswith("format") and WIDE.search(text):
        return True
    inner = sum(len(one) for one in args if isinstance(one, (str, list, tuple, dict)))
    pieces = sum(len(x) for one in args if isinstance(one, (list, tuple)) for x in one if isinstance(x, str))
    width = max((abs(one) for one in args if isinstance(one, int)), default=0)
    return max((len(text) + 1) * (inner + 1) + pieces, width) > MAX_TEXT


def to_native(value: Any) -> Any:
    """Return a value as Python's own, MISSING where some of it is not known or has no such form."""
    return MISSING if heavy(value) else _to_native(value)


def _to_native(value: Any) -> Any:
    value = plain_enum(value)
    if isinstance(value, List):
        items = value.items
        return MISSING if isinstance(items, Unknown) else [_to_native(one) for one in items]
    if isinstance(value, tuple):
        return tuple(_to_native(one) for one in value)
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if isinstance(value, Dict) and SMEARED not in value.cells:
        inner = {key: _to_native(one) for key, one in value.cells.items()}
        return MISSING if any(one is MISSING for one in inner.values()) else inner
    return MISSING


def _from_native(value: Any) -> Any:
    if isinstance(value, list):
        return List(_from_native(one) for one in value)
    if isinstance(value, tuple):
        return tuple(_from_native(one) for one in value)
    if isinstance(value, dict):
        return Dict({key: _from_native(one) for key, one in value.items()})
    if isinstance(value, (set, frozenset)):
        return Set(sorted(value, key=repr))
    return value


from_native = _from_native


def _items(value: Any) -> Any:
    return value.items if isinstance(value, List) else value


def _change(change: Callable[[Any, List, list[Any], list[Any]], list[Any] | None]) -> Callable[..., Any]:
    """A method that changes a list in place: each of those it can be; one that is not known stays unknown."""

    def run(interpreter: Any, value: List, *args: Any) -> Any:
        options = options_of(value.items) or ()
        if not all(isinstance(one, tuple) for one in options):
            return None
        made = []
        for items in options:
            interpreter.spend(len(items))
            made.append(change(interpreter, value, list(items), list(args)))
        if made:
            open_items = Unknown(needs_of(*args) or {"list"})
            whole = [tuple(one) for one in made if one is not None]
            new = unknown(needs_of(value.items), whole) if len(whole) == len(made) else open_items
            interpreter.write(value, "items", new)
        return None

    return run


def _extend(interpreter: Any, value: List, items: list[Any], args: list[Any]) -> list[Any] | None:
    for one in args:
        more = interpreter.iterate(one)
        if more is None or len(items) + len(more) > MAX_SIZE:
            return None
        items += more
    return items


def _add_all(interpreter: Any, value: List, items: list[Any], args: list[Any]) -> list[Any] | None:
    more = _extend(interpreter, value, [], args)
    return None if more is None else list(interpreter.make_set([*items, *more]).items)


def _without(interpreter: Any, value: List, items: list[Any], args: list[Any]) -> list[Any] | None:
    outcomes = [equal(one, args[0]) for one in items]
    if any(isinstance(one, Unknown) for one in outcomes):
        return None
    at = next((index for index, one in enumerate(outcomes) if one), None)
    return items if at is None else items[:at] + items[at + 1 :]


def _pop_list(interpreter: Any, value: List, index: Any = -1) -> Any:
    if isinstance(value.items, Unknown) or not isinstance(index, int) or not value.items:
        return Unknown(("pop",))
    items = list(value.items)
    out = items.pop(index)
    interpreter.write(value, "items", tuple(items))
    return out


def _sort(interpreter: Any, value: List, **order: Any) -> Any:
    made = interpreter.call(interpreter.builtin("sorted"), [value], order)
    interpreter.write(value, "items", made.items if isinstance(made, List) else made)


def _index(interpreter: Any, value: Any, item: Any, *rest: Any) -> Any:
    items = _items(value)
    if isinstance(items, Unknown):
        return Unknown(items.needs)
    for position, one in enumerate(items):
        outcome = equal(one, item)
        if isinstance(outcome, Unknown):
            return Unknown(outcome.needs)
        if outcome:
            return position
    raise Raised("ValueError", "value is not in list", interpreter.here())


def _count(interpreter: Any, value: Any, item: Any) -> Any:
    items = _items(value)
    outcomes = [] if isinstance(items, Unknown) else [equal(one, item) for one in items]
    if isinstance(items, Unknown) or any(isinstance(one, Unknown) for one in outcomes):
        return Unknown(("count",))
    return sum(1 for one in outcomes if one)


def _copy(interpreter: Any, value: Any) -> Any:
    if isinstance(value, Dict):
        made = Dict(dict(value.cells))
        made.sites = dict(value.sites)
        return made
    made = type(value)()
    made.cells["items"] = value.items
    return made


def _set_operation(keep: Callable[[bool, bool], bool], *, both: bool) -> Callable[..., Any]:
    def run(interpreter: Any, value: Any, *others: Any) -> Any:
        current = value
        for other in others:
            left, right = interpreter.iterate(current), interpreter.iterate(other)
            if left is None or right is None:
                return Unknown(needs_of(current, other) or {"set"})
            pool = [*left, *right] if both else left
            out = []
            for one in pool:
                in_left, in_right = contains(one, List(left)), contains(one, List(right))
                if isinstance(in_left, Unknown) or isinstance(in_right, Unknown):
                    return Unknown(needs_of(in_left, in_right))
                if keep(in_left, in_right):
                    out.append(one)
            current = interpreter.make_set(out)
        return current if others else _copy(interpreter, value)

    return run


def _subset(interpreter: Any, value: Any, other: Any) -> Any:
    left = interpreter.iterate(value)
    if left is None:
        return Unknown(needs_of(value) or {"set"})
    outcomes = [contains(one, other) for one in left]
    if any(one is False for one in outcomes):
        return False
    return next((one for one in outcomes if isinstance(one, Unknown)), True)


def _get(interpreter: Any, value: Dict, key: Any, default: Any = None) -> Any:
    if isinstance(key, Unknown):
        return lift(lambda one: _get(interpreter, value, one, default), key)
    held = value.cells.get(interpreter.key(key), MISSING)
    if held is MISSING:
        return Unknown(value.cells[SMEARED].needs) if SMEARED in value.cells else default
    interpreter.read(value.taints.get(key))
    return present(held, default)


def _setdefault(interpreter: Any, value: Dict, key: Any, default: Any = None) -> Any:
    name = interpreter.key(key)
    if isinstance(name, Unknown):
        interpreter.write(value, SMEARED, name)
        return Unknown(name.needs)
    held = value.cells.get(name, MISSING)
    if held is MISSING or (isinstance(held, Unknown) and held.options and MISSING in held.options):
        held = default if held is MISSING else present(held, default)
        interpreter.write(value, name, held)
        value.sites[name] = interpreter.site(interpreter.frames[-1] if interpreter.frames else None, None, held)
    return held


def _pop_dict(interpreter: Any, value: Dict, key: Any, default: Any = MISSING) -> Any:
    name = interpreter.key(key)
    if isinstance(name, Unknown):
        return Unknown(name.needs)
    held = value.cells.get(name, MISSING)
    if held is MISSING:
        if default is MISSING:
            raise Raised("KeyError", repr(key), interpreter.here())
        return default
    interpreter.write(value, name, MISSING)
    return present(held, default) if default is not MISSING else present(held)


def _update(interpreter: Any, value: Dict, other: Any = None, **more: Any) -> Any:
    if isinstance(other, Dict):
        interpreter.update_dict(value, other)
    elif isinstance(other, Unknown):
        interpreter.write(value, SMEARED, other)
    for key, one in more.items():
        interpreter.write(value, key, one)


def _view(pick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(interpreter: Any, value: Dict) -> Any:
        if interpreter.iterate(value) is None:
            return Unknown(needs_of(*value.cells.values()) or {"dict"})
        return List(pick(key, one) for key, one in value.cells.items())

    return run


def declare_all(interpreter: Any, value: Stash, pairs: Any) -> None:
    """Each pair is (who declares, {field: value})."""
    known = interpreter.iterate(pairs)
    several = pairs.items if isinstance(pairs, List) and isinstance(pairs.items, Unknown) else pairs
    if (
        known is None
        and isinstance(several, Unknown)
        and several.options
        and all(isinstance(one, (tuple, List)) for one in several.options)
    ):

        def arm(one: Any) -> bool:
            declare_all(interpreter, value, one)
            return True

        arms = [partial(arm, one) for one in several.options]
        interpreter.fork(arms, several.needs, ["declarations"] * len(arms))
        return
    if known is None:
        interpreter.smeared_declaration(value.record, pairs.items if isinstance(pairs, List) else pairs)
    for pair in known or ():
        declared = pair[1] if isinstance(pair, tuple) and len(pair) == 2 else None
        if not isinstance(declared, Dict) or SMEARED in declared.cells:
            interpreter.smeared_declaration(value.record, declared if declared is not None else pair)
            continue
        for name, one in declared.cells.items():
            if isinstance(name, str):
                site = declared.sites.get(name) or interpreter.site(interpreter.frames[-1], None, one)
                interpreter.decide(value.record, name, one, site)


_KINDS: tuple[tuple[type, type], ...] = ((Set, set), (List, list), (Dict, dict))
_STASH: dict[str, Callable[..., Any]] = {
    "append": lambda i, v, pair: declare_all(i, v, List([pair])),
    "extend": declare_all,
}
_LISTS: dict[str, Callable[..., Any]] = {
    "append": _change(lambda i, v, items, a: [*items, a[0]]),
    "extend": _change(_extend),
    "insert": _change(lambda i, v, items, a: [*items[: a[0]], a[1], *items[a[0] :]] if isinstance(a[0], int) else None),
    "remove": _change(_without),
    "clear": _change(lambda i, v, items, a: []),
    "reverse": _change(lambda i, v, items, a: items[::-1]),
    "sort": _sort,
    "pop": _pop_list,
    "index": _index,
    "count": _count,
    "copy": _copy,
}
_SETS: dict[str, Callable[..., Any]] = {
    "add": _change(lambda i, v, items, a: list(i.make_set([*items, a[0]]).items)),
    "update": _change(_add_all),
    "discard": _change(_without),
    "remove": _change(_without),
    "clear": _change(lambda i, v, items, a: []),
    "union": _set_operation(lambda left, right: left or right, both=True),
    "intersection": _set_operation(lambda left, right: left and right, both=False),
    "difference": _set_operation(lambda left, right: left and not right, both=False),
    "symmetric_difference": _set_operation(lambda left, right: left != right, both=True),
    "issubset": _subset,
    "issuperset": lambda i, v, other: _subset(i, i.make_set(i.iterate(other) or ()), v),
    "isdisjoint": lambda i, v, other: negate(_set_operation(lambda x, y: x and y, both=False)(i, v, other)),
    "copy": _copy,
}
_DICTS: dict[str, Callable[..., Any]] = {
    "get": _get,
    "setdefault": _setdefault,
    "pop": _pop_dict,
    "update": _update,
    "keys": _view(lambda key, one: key),
    "values": _view(lambda key, one: one),
    "items": _view(lambda key, one: (key, one)),
    "copy": _copy,
    "clear": lambda i, v: [i.write(v, key, MISSING) for key in list(v.cells)] and None,
}


def joined(values: list[Any], needs: frozenset[str]) -> Any:
    return join(values, needs)
