# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What load a point puts on, as a key to find the same load elsewhere and as words for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def load_key(point: Mapping[str, Any]) -> int | str | None:
    """Return the concurrency of a closed loop, rate and kind of arrivals of an open one; None when it says neither.

    >>> load_key({"concurrency": 16, "rate": None}), load_key({"concurrency": 9, "rate": 2.5, "arrivals": "poisson"})
    (16, '2.5/s poisson')
    """
    rate, concurrency = point.get("rate"), point.get("concurrency")
    if rate is not None:
        return f"{rate:g}/s {point.get('arrivals')}"
    return concurrency if isinstance(concurrency, int) else None


def load_words(point: Mapping[str, Any]) -> str:
    """Return the load as messages name it.

    >>> load_words({"concurrency": 16}), load_words({"rate": 2.5, "arrivals": "constant"})
    ('concurrency 16', 'rate 2.5/s')
    """
    rate = point.get("rate")
    return f"concurrency {point.get('concurrency')}" if rate is None else f"rate {rate:g}/s"
