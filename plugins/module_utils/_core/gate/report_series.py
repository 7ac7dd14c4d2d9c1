# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""samples.jsonl, folded line by line into what the charts draw: room does not grow with the length of a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..units import NS_PER_MS, NS_PER_S
from .report_format import number

BINS_PER_DECADE = 200
SMALLEST_MS = 1e-3
BUCKET_S = 0.05
SMOOTH_S = 0.25
MOST_BUCKETS_PER_GAP = 2_000
LATENCIES = ("ttft_ms", "ttft_answer_ms", "itl_ms", "tpot_ms", "e2e_ms")


@dataclass
class Histogram:
    """Times as counts in bins of equal ratio (1.2 % wide): a million gaps take no more room than a thousand."""

    counts: dict[int, int] = field(default_factory=dict)
    largest: float | None = None

    @property
    def n(self) -> int:
        return sum(self.counts.values())

    @property
    def median_bin(self) -> int:
        """The bin in which the middle one of the samples lies; there must be one."""
        left = (self.n + 1) // 2
        for place, count in sorted(self.counts.items()):
            left -= count
            if left <= 0:
                return place
        raise ValueError("an empty histogram has no median")

    def add(self, milliseconds: float) -> None:
        place = bin_of(milliseconds)
        self.counts[place] = self.counts.get(place, 0) + 1
        self.largest = milliseconds if self.largest is None else max(self.largest, milliseconds)


def bin_of(milliseconds: float) -> int:
    return math.floor(BINS_PER_DECADE * math.log10(max(milliseconds, SMALLEST_MS)))


@dataclass
class PointSeries:
    """One point of the plan: when it ran, its tokens over time, and the latencies of the requests of its window."""

    index: int
    concurrency: float | None
    start_s: float
    end_s: float
    counted_s: tuple[float, float] | None = None
    """From the first planned start to the last sign of life of the requests of the window."""
    tokens: dict[int, float] = field(default_factory=dict)
    """Tokens per bucket of BUCKET_S on the run's clock."""
    latencies: dict[str, Histogram] = field(default_factory=lambda: {name: Histogram() for name in LATENCIES})

    @classmethod
    def empty(cls, index: int, row: Mapping[str, Any], planned_s: float) -> PointSeries:
        return cls(index, number(row.get("concurrency")), planned_s, planned_s)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one request."""
        planned = _time(row.get("planned_ns")) or 0.0
        chunks = _chunks(row)
        alive = [planned, *(time for key in ("first_ns", "end_ns") if (time := _time(row.get(key))) is not None)]
        ends = max([*alive, chunks[-1][0]] if chunks else alive)
        self.start_s, self.end_s = min(self.start_s, planned), max(self.end_s, ends)
        before = planned
        for moment, count in chunks:
            self._spread(before, moment, count)
            before = moment
        if row.get("phase") != "window":
            return
        first, last = self.counted_s or (planned, ends)
        self.counted_s = min(first, planned), max(last, ends)
        if row.get("status") == "ok":
            self._count(row, planned, [moment for moment, dummy in chunks])

    def per_second(self, most: int) -> tuple[list[float], list[float]]:
        """Return (seconds since the point began, tokens per second), at most so many, each over at least SMOOTH_S."""
        first, last = int(self.start_s / BUCKET_S), math.ceil(self.end_s / BUCKET_S)
        if last <= first:
            return [], []
        wide = max(-(-(last - first) // most), round(SMOOTH_S / BUCKET_S))
        totals = [0.0] * -(-(last - first) // wide)
        for bucket, tokens in self.tokens.items():
            totals[min(len(totals) - 1, max(0, (bucket - first) // wide))] += tokens
        moments, rates = [], []
        for place, total in enumerate(totals):
            begins, ends = (first + place * wide) * BUCKET_S, (first + (place + 1) * wide) * BUCKET_S
            inside = min(ends, self.end_s) - max(begins, self.start_s)
            if inside > SMOOTH_S / 2:
                moments.append(max(begins, self.start_s) + inside / 2 - self.start_s)
                rates.append(total / inside)
        # What was on its way when the point was cut never arrived, so the end would look like a fall.
        return (moments[:-1], rates[:-1]) if len(rates) > 4 else (moments, rates)

    def _spread(self, since: float, moment: float, count: float) -> None:
        """A chunk was made between the one before and its own moment; counting it at its moment would draw a saw."""
        low, high = int(since / BUCKET_S), int(moment / BUCKET_S)
        if not 0 < high - low <= MOST_BUCKETS_PER_GAP:
            low = high
        ends = ((min(moment, (each + 1) * BUCKET_S), max(since, each * BUCKET_S)) for each in range(low, high + 1))
        inside = [max(0.0, end - begin) for end, begin in ends]
        whole = sum(inside)
        for bucket, part in enumerate(inside, low) if whole > 0 else ((high, 1.0),):
            self.tokens[bucket] = self.tokens.get(bucket, 0.0) + count * part / (whole or 1.0)

    def _count(self, row: Mapping[str, Any], planned: float, moments: list[float]) -> None:
        for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
            if (value := number(row.get(name))) is not None:
                self.latencies[name].add(value)
        answer = _time(row.get("first_answer_ns"))
        if answer is not None and answer >= planned:
            self.latencies["ttft_answer_ms"].add((answer - planned) * NS_PER_S / NS_PER_MS)
        for before, after in itertools.pairwise(moments):
            if after >= before:
                self.latencies["itl_ms"].add((after - before) * NS_PER_S / NS_PER_MS)


def _time(value: Any) -> float | None:
    """A moment on the run's clock [s]; None for what cannot be one."""
    real = number(value)
    return None if real is None or not 0 <= real < 1e17 else real / NS_PER_S


def _chunks(row: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(moment [s], tokens) of every chunk that is readable."""
    chunks = row.get("chunks")
    found = []
    for chunk in chunks if isinstance(chunks, list) else ():
        if isinstance(chunk, list) and len(chunk) == 2:
            moment, count = _time(chunk[0]), number(chunk[1])
            if moment is not None and count is not None and 0 <= count < 1e9:
                found.append((moment, count))
    return found
