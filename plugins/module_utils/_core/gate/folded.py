# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Readings over time in a fixed amount of room: neighbours are folded together once there are too many to keep apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_STRETCHES = 400


@dataclass
class Stat:
    """What is kept of one value over a stretch of time; of a counter, ``gain`` is how much it grew within it."""

    total: float
    count: int
    least: float
    most: float

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def gain(self) -> float:
        return self.most - self.least

    def join(self, other: Stat) -> None:
        self.total += other.total
        self.count += other.count
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


@dataclass
class _Stretch:
    first_ns: int
    last_ns: int
    readings: int
    stats: dict[str, Stat]

    def join(self, other: _Stretch) -> None:
        self.last_ns, self.readings = other.last_ns, self.readings + other.readings
        _join(self.stats, other.stats)


@dataclass(frozen=True)
class Over:
    """What was read over some windows: a value that was never read is not in ``stats``."""

    stats: Mapping[str, Stat]
    readings: int = 0
    seconds: float = 0.0
    """From the first reading to the last, each window by itself."""

    def mean(self, name: str) -> float | None:
        return self.stats[name].mean if name in self.stats else None

    def most(self, name: str) -> float | None:
        return self.stats[name].most if name in self.stats else None

    def gain(self, name: str) -> float | None:
        return self.stats[name].gain if name in self.stats and self.stats[name].count > 1 else None


class Folded:
    """Takes readings in the order of time. Each lies in a stretch of its own until there are ``most`` of them."""

    def __init__(self, most: int = MOST_STRETCHES) -> None:
        self._most, self._each = most, 1
        self._stretches: list[_Stretch] = []

    def add(self, ns: int, values: Mapping[str, float | None]) -> None:
        """Take one reading; a value that is None was not read."""
        stats = {name: Stat(value, 1, value, value) for name, value in values.items() if value is not None}
        fresh = _Stretch(ns, ns, 1, stats)
        if self._stretches and self._stretches[-1].readings < self._each:
            self._stretches[-1].join(fresh)
            return
        self._stretches.append(fresh)
        if len(self._stretches) > self._most:
            self._fold()

    def over(self, windows: Sequence[tuple[int, int]]) -> Over:
        """Return what was read in the windows [ns].

        Only stretches that lie within a window as a whole count: what was booked right before it is none of its own. Where
        none does, the window is shorter than a stretch, and the one whose middle lies in it speaks.
        """
        stats: dict[str, Stat] = {}
        readings, seconds = 0, 0.0
        for low, high in windows:
            whole = [one for one in self._stretches if low <= one.first_ns and one.last_ns <= high]
            inside = whole or [one for one in self._stretches if low <= (one.first_ns + one.last_ns) / 2 <= high]
            for one in inside:
                _join(stats, one.stats)
                readings += one.readings
            seconds += (inside[-1].last_ns - inside[0].first_ns) / 1e9 if inside else 0.0
        return Over(stats, readings, seconds)

    def _fold(self) -> None:
        self._each *= 2
        pairs = zip(self._stretches[::2], self._stretches[1::2], strict=False)
        odd = self._stretches[-1:] if len(self._stretches) % 2 else []
        folded = []
        for first, second in pairs:
            first.join(second)
            folded.append(first)
        self._stretches = folded + odd


def _join(stats: dict[str, Stat], others: Mapping[str, Stat]) -> None:
    for name, other in others.items():
        if name in stats:
            stats[name].join(other)
        else:
            stats[name] = Stat(other.total, other.count, other.least, other.most)
