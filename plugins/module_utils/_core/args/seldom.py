# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Garbage collection that does not walk through all syntax trees again each time a few hundred nodes were added to them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects more than were freed before the youngest are looked at; the largest check leaves 220,000. Trees stay until the end; the
# cycles a hostile source makes the interpretation leave behind are still collected.
YOUNG = 500_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom, until the end of the block; a caller who has switched collection off keeps it off."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(YOUNG, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
