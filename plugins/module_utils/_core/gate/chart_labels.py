# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Labels of a chart that keep out of each other's way: each takes the first free one of the places it could stand."""

from __future__ import annotations

from collections.abc import Sequence

from .charts import text

# Room of a letter in a chart 520 wide, at the size it has on a phone; the desk has more room.
LETTER, HEIGHT = 9.0, 16.0
Box = tuple[float, float, float, float]
Place = tuple[float, float, str]
"""Offset to the right, offset downwards (of the base line), anchor."""


class Labels:
    """Collects labels; what was put first stands, what finds no room is left out unless it must be there."""

    def __init__(self) -> None:
        self._taken: list[Box] = []
        self.parts: list[str] = []

    def keep_free(self, x: float, y: float, reach: float) -> None:
        """Nothing may be written over this place."""
        self._taken.append((x - reach, y - reach, x + reach, y + reach))

    def put(self, x: float, y: float, words: str, style: str, places: Sequence[Place], *, must: bool = False) -> None:
        """Write a label at the first free place; without one at the first place of all if it must be there."""
        for across, down, anchor in places:
            box = _box(x + across, y + down, words, anchor)
            if not any(_meet(box, other) for other in self._taken):
                break
        else:
            if not must:
                return
            across, down, anchor = places[0]
            box = _box(x + across, y + down, words, anchor)
        self._taken.append(box)
        self.parts.append(text(x + across, y + down, words, style, anchor))


def _box(x: float, y: float, words: str, anchor: str) -> Box:
    wide = LETTER * len(words)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - HEIGHT * 0.75, left + wide, y + HEIGHT * 0.25


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
