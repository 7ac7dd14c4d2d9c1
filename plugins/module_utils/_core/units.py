# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conversions between the units that names carry. Time inside Python is int ns; it is converted at the edge."""

from __future__ import annotations

import datetime

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
BYTES_PER_MIB = 1 << 20


def ns_to_ms(value: int) -> float:
    """Return milliseconds for a duration in nanoseconds."""
    return value / NS_PER_MS


def ns_to_s(value: int) -> float:
    """Return seconds for a duration in nanoseconds."""
    return value / NS_PER_S


def s_to_ns(value: float) -> int:
    """Return nanoseconds for a duration in seconds."""
    return round(value * NS_PER_S)


def human_seconds(value: float) -> str:
    """Return a duration in seconds as people write it.

    >>> human_seconds(42.4), human_seconds(130), human_seconds(7260)
    ('42 s', '2 min 10 s', '2 h 1 min')
    """
    total = round(value)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s" if total % 60 else f"{total // 60} min"
    return f"{total // 3600} h {total % 3600 // 60} min"


def time_stamp(t: float) -> str:
    """Return a time as names of folders have it.

    >>> time_stamp(0)
    '19700101T000000Z'
    """
    return datetime.datetime.fromtimestamp(t, datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
