# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How much a source may make the evaluator do: what would take more is UNKNOWN. The largest release needs a hundredth of it."""

from __future__ import annotations

import math
import re
from typing import Any

from ..flags import UNKNOWN

STEPS = 300_000
# Expressions inside each other, through calls and names: well before the interpreter's own limit, which is no place to turn back.
DEPTH = 100
# Characters of a text, items of a container.
ITEMS = 1_000_000
BITS = 4096
# Methods of text and plain containers that are called; none of them formats, so none reads attributes of objects.
METHODS = frozenset(
    """add append capitalize copy count endswith extend get group groups index insert isdigit items join keys lower lstrip
    partition pop removeprefix removesuffix replace rpartition rsplit rstrip split splitlines startswith strip title union
    update upper values""".split()  # noqa: SIM905
)
# A repeated group inside a pattern may take for ever to fail.
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def sized(value: Any) -> Any:
    return value if len(value) <= ITEMS else UNKNOWN


def fits(method: str, *values: Any) -> bool:
    """Whether what a method makes of these values stays below the limit."""
    sizes = [len(value) for value in values if hasattr(value, "__len__")]
    return math.prod(max(size, 1) for size in sizes) <= ITEMS if method in ("replace", "join") else sum(sizes) <= ITEMS


def add(left: Any, right: Any) -> Any:
    if hasattr(left, "__len__") and hasattr(right, "__len__") and len(left) + len(right) > ITEMS:
        return UNKNOWN
    return left + right


def multiply(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if hasattr(one, "__len__") and isinstance(other, int) and len(one) * max(other, 1) > ITEMS:
            return UNKNOWN
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > BITS:
        return UNKNOWN
    return left * right


def power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > BITS:
        return UNKNOWN
    return left**right


def shift(left: int, right: int) -> Any:
    return left << right if left.bit_length() + right <= BITS else UNKNOWN


def fullmatch(pattern: str, text: str) -> Any:
    if len(pattern) > 200 or len(text) > 200 or _REPEATED_GROUP.search(pattern):
        return UNKNOWN
    return re.fullmatch(pattern, text)
