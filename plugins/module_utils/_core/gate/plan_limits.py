# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Limits of a point: absolute, a share of the bound, or relative to the promoted release; and those a plan without any gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import plan_values as read

LATENCIES = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SHARES = ("min_roofline_ratio", "min_goodput_ratio")
RATE_LIMITS = ("min_output_tokens_per_s", "min_roofline_ratio", "min_ratio_to_promoted", "min_goodput_ratio")
LATENCY_LIMITS = tuple(f"max_{latency}_{rank}_ms" for latency in LATENCIES for rank in PERCENTILES)
LIMITS = RATE_LIMITS + LATENCY_LIMITS
LIMIT_KEYS = ("limit", "tolerance_ratio")
_LATENCY_LIMIT = re.compile(r"max_(ttft|tpot|itl|e2e)_(p50|p90|p99)_ms")

# The same set-up measured twice by the same people differed by 5 % at one stream, 2 % at 16 (rtx6kpro, kimi-k26 and -v2).
PROMOTED_TOLERANCE = 0.05
# Shares of the bound for a first deploy that names no limit; they catch a broken server, not a slow one.
# One stream: 0.74 with graphs, 0.51 without (pipeline of 8). Tensor parallel, whose all-reduces the bound does not count:
# 0.19 … 0.24 for 73 … 91 tok/s, 0.04 for a known bad set-up (R71). Filled by 16 streams: 0.27 was the best seen.
FIRST_ONE_STREAM = 0.6
FIRST_ONE_STREAM_TENSOR_PARALLEL = 0.15
FIRST_FILLED = 0.2
# At an arrival rate throughput tells what arrived; that it keeps up and answers is what a first deploy must show.
FIRST_GOODPUT = 0.95


@dataclass(frozen=True)
class Limit:
    """One limit of one point; ``value`` is what is judged: the stated limit less (for a maximum: plus) its tolerance.

    ``latency`` and ``rank`` are set for percentile limits alone.
    """

    name: str
    value: float
    latency: str | None = None
    rank: str | None = None
    stated: float | None = None
    tolerance_ratio: float = 0.0

    def written(self) -> Any:
        """Return the limit as a plan writes it."""
        if not self.tolerance_ratio:
            return self.value
        return {"limit": self.stated, "tolerance_ratio": self.tolerance_ratio}


def limit(name: str, raw: Any, where: str) -> Limit:
    """Return a limit written as a number or as {limit, tolerance_ratio}."""
    place, tolerance = f"{where}.{name}", 0.0
    if isinstance(raw, Mapping):
        read.refuse_unknown(raw, LIMIT_KEYS, place, "key of a limit")
        tolerance = read.number(raw, "tolerance_ratio", 0.0, low=0, high=0.5, where=place)
        raw = raw.get("limit")
    stated = read.checked_number(raw, place, low=0, high=1 if name in SHARES else 1e12)
    match = _LATENCY_LIMIT.fullmatch(name)
    value = stated * (1 + tolerance if match else 1 - tolerance)
    latency, rank = match.groups() if match else (None, None)
    return Limit(name, value, latency, rank, stated, tolerance)


def default_limit(*, promoted: bool, concurrency: int | None, tp_size: int | None) -> Limit:
    """Return what a point must reach when the plan names no limit at all: the promoted figure, else a share of the bound.

    ``concurrency`` is None for an arrival rate, of which nearly all requests must be answered.
    """
    if promoted:
        return Limit("min_ratio_to_promoted", 1 - PROMOTED_TOLERANCE, stated=1.0, tolerance_ratio=PROMOTED_TOLERANCE)
    if concurrency is None:
        return Limit("min_goodput_ratio", FIRST_GOODPUT, stated=FIRST_GOODPUT)
    share = FIRST_FILLED
    if concurrency == 1:
        share = FIRST_ONE_STREAM if (tp_size or 1) == 1 else FIRST_ONE_STREAM_TENSOR_PARALLEL
    return Limit("min_roofline_ratio", share, stated=share)
