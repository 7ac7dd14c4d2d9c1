# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""When the figures of a running point are looked at: seldom enough to keep the error rate and to leave the load its CPU."""

from __future__ import annotations

# Each look is another chance of a wrong word; looking when a seventh more is known ends a point hardly later.
GROWTH = 1.15
LEAST = 3
# A look must not hold up the reading of tokens: of the client's time it gets a thirtieth at most.
PAUSE_PER_WORK = 30


class Looks:
    """Asked with how much is known (whole rounds); says whether to look now."""

    def __init__(self) -> None:
        self._next = float(LEAST)
        self._free_ns = 0

    def due(self, known: int, now_ns: int) -> bool:
        """Tell whether ``known`` is enough more than at the last look; a look that is due counts as taken."""
        if known < self._next or now_ns < self._free_ns:
            return False
        self._next = max(known * GROWTH, known + 1.0)
        return True

    def took(self, began_ns: int, ended_ns: int) -> None:
        """Note how long a look took: the next one waits in proportion."""
        self._free_ns = ended_ns + PAUSE_PER_WORK * (ended_ns - began_ns)
