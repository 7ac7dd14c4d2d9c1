# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the server's log says was true, how far a client's figure is from it, and which of two clients is nearer."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))
from _core.gate.stats import percentile, student_t_quantile

NS_PER_MS, NS_PER_S = 1e6, 1e9


@dataclass(frozen=True)
class Truth:
    """As sent, by the clock of the server."""

    tokens_per_s: float
    ttft_p50_ms: float
    itl_p50_ms: float
    itl_p99_ms: float


def truth(log: Mapping[str, Any], *, streams: int, tokens: int) -> Truth:
    """Return what the server did for requests of the full length.

    TTFT: arrival of the request to the first token. ITL: all gaps pooled. Throughput: what the server gives to so many streams
    that are never idle: streams x tokens / mean time from arrival to the last token.
    """
    whole = [one for one in log["requests"] if len(one["sent_ns"]) == tokens and not one["whole"]]
    if not whole:
        raise ValueError("the server answered no request of the full length")
    gaps = sorted(after - before for one in whole for before, after in itertools.pairwise(one["sent_ns"]))
    served = fmean(one["sent_ns"][-1] - one["received_ns"] for one in whole)
    p99 = percentile(gaps, 0.99)
    return Truth(
        streams * tokens / served * NS_PER_S,
        median(one["sent_ns"][0] - one["received_ns"] for one in whole) / NS_PER_MS,
        median(gaps) / NS_PER_MS,
        (gaps[-1] if p99 is None else p99) / NS_PER_MS,
    )


def error(said: float | None, true: float) -> float | None:
    """Return the relative error, with its sign; None where nothing was said."""
    return None if said is None else said / true - 1


def mean_and_reach(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float | None]:
    """Return the mean and half the width of its Student interval; None below two values."""
    if len(values) < 2:
        return fmean(values), None
    quantile = student_t_quantile((1 + confidence) / 2, len(values) - 1)
    return fmean(values), quantile * stdev(values) / len(values) ** 0.5


@dataclass(frozen=True)
class Paired:
    """Ours minus the other's, round by round: both met the same server one after the other. Less is better."""

    difference: float
    reach: float | None

    @property
    def as_good(self) -> bool:
        """Tell whether ours is better, or not worse by more than the interval; without an interval it must be better."""
        return self.difference - (self.reach or 0.0) <= 0


def paired(ours: Sequence[float], other: Sequence[float]) -> Paired:
    """Compare two clients over the same rounds."""
    return Paired(*mean_and_reach([a - b for a, b in zip(ours, other, strict=True)]))
