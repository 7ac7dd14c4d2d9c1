# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is too large to compute: hostile or mistaken source makes values that would cost more than any setting is worth."""

from __future__ import annotations

import re
from typing import Any

from .values import Dict, Instance, List

MAX_SIZE = 200_000  # items of one container, characters of a text that is computed
MAX_BITS = 100_000  # of one number
MAX_PARTS = 20_000  # of a value that is compared, hashed or printed; what it holds twice counts twice
MAX_COPIED = 5_000_000  # items copied in one check
MAX_WORK = 300_000  # statements and calls of one check; the longest of any release takes 15,000
MAX_STEPS = 10_000_000  # of one search for a pattern
# A width or precision of a format that no message has.
WIDE = re.compile(r"\d{5}")
_REPEAT = re.compile(r"(?<!\\)[*+]|\{\d*,\d*\}")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")


def heavy(value: Any) -> bool:
    """Return whether a value has more than MAX_PARTS parts. Stops there: parts may be shared, or hold themselves."""
    left = MAX_PARTS
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        parts: Any = ()
        if isinstance(one, tuple):
            parts = one
        elif isinstance(one, List):
            parts = one.items if isinstance(one.items, tuple) else ()
        elif isinstance(one, (Dict, Instance)):
            parts = one.cells.values()
        left -= len(parts)
        if left < 0:
            return True
        waiting += (part for part in parts if isinstance(part, (tuple, List, Dict, Instance)))
    return False


def searchable(pattern: str, text: str) -> bool:
    """Return whether matching must end soon: a repeated group, or many repeats on a long text, may take for ever.

    >>> searchable("v?[0-9]+", "v12"), searchable("(a+)+$", "a" * 40)
    (True, False)
    """
    if _REPEATED_GROUP.search(pattern) and len(text) > 16:
        return False
    steps: int = 2 ** min(pattern.count("?"), 40)
    for dummy in _REPEAT.findall(pattern):
        steps *= len(text) + 1
        if steps > MAX_STEPS:
            return False
    return steps <= MAX_STEPS
