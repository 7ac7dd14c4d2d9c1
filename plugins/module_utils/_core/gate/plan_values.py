# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading single values of a plan: each returns the checked value or refuses it by name and place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InferopsError


def section(raw: Any, known: Iterable[str], where: str, kind: str) -> Mapping[str, Any]:
    """Return a mapping whose keys are all known; an absent one is empty."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise InferopsError(f"{where} is not a mapping", where=where, do=f"use the keys {', '.join(known)}")
    refuse_unknown(raw, known, where, kind)
    return raw


def refuse_unknown(raw: Mapping[str, Any], known: Iterable[str], where: str, kind: str) -> None:
    names = tuple(known)
    for key in raw:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1, cutoff=0)
            raise InferopsError(
                f"{key} is not a {kind}", where=f"{where}.{key}", why=f"known: {', '.join(names)}", do=f"did you mean {near[0]}?"
            )


def text(value: Any, where: str) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise InferopsError(f"{value!r} is not a non-empty text", where=where, do="quote it")
    return value


def choice(raw: Mapping[str, Any], key: str, default: Any, allowed: tuple[Any, ...], *, where: str = "plan") -> Any:
    value = default if raw.get(key) is None else raw[key]
    if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
        words = ", ".join(str(one).lower() if isinstance(one, bool) else str(one) for one in allowed)
        raise InferopsError(f"{key} {value!r} is none of {words}", where=f"{where}.{key}", do=f"write one of {words}")
    return value


def whole(raw: Mapping[str, Any], key: str, default: int, *, least: int, where: str = "plan") -> int:
    value = raw.get(key)
    if value is None:
        return default
    # JSON has one kind of number: some tools write 512 as 512.0.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1 or value < least:
        raise InferopsError(f"{key} {value!r} is not a whole number of at least {least}", where=f"{where}.{key}", do="correct it")
    return int(value)


def whole_or_none(raw: Mapping[str, Any], key: str, *, least: int, most: int, where: str = "plan") -> int | None:
    if raw.get(key) is None:
        return None
    value = whole(raw, key, least, least=least, where=where)
    if value > most:
        raise InferopsError(f"{key} {value} is above {most}", where=f"{where}.{key}", do="correct it, or leave it out")
    return value


def number(raw: Mapping[str, Any], key: str, default: float, *, low: float, high: float, where: str = "plan") -> float:
    value = raw.get(key)
    return default if value is None else checked_number(value, f"{where}.{key}", low=low, high=high)


def checked_number(value: Any, where: str, *, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InferopsError(f"{value!r} is not a number from {low:g} to {high:g}", where=where, do="correct it")
    return float(value)
