# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Output throughput of one point with its interval: over whole request cycles, so that neither phase nor stop favours it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..units import ns_to_s
from .load import PointLoad
from .stats import at_each_look, half_width
from .stream import Trace

LEAST_SLICES, MOST_SLICES = 3, 40


@dataclass(frozen=True)
class Throughput:
    """Output tokens per second with its interval; ``rounds`` is the number of values the interval rests on."""

    value: float | None
    ci: tuple[float, float] | None
    rounds: int


def throughput(load: PointLoad, confidence: float, *, now_ns: int | None = None) -> Throughput:
    """Return output throughput over whole request cycles.

    Each worker contributes its first K completed requests, K being the same for all: tokens / time from the planned
    start of the first to the end of the K-th. The sum over workers is the figure. So every window spans whole cycles
    (time to first token counts in full), and stopping after a whole round does not favour fast ones. The interval comes
    from the K round figures: a round holds each worker once, so that workers which stay slow or fast for good (requests
    that share a micro-batch stay together) are no spread of it. Without a whole round: tokens so far / time, no interval.
    At an arrival rate the load is steady while the window is open: tokens received in it / its length, the interval from
    slices of it.
    """
    if load.rate is not None:
        return _of_arrivals(load, confidence, now_ns)
    rounds = load.rounds
    if rounds == 0:
        end = load.known_ns(now_ns)
        seen = load.tokens_seen
        if load.window_start_ns is None or end is None or end <= load.window_start_ns or seen == 0:
            return Throughput(None, None, 0)
        return Throughput(seen / ns_to_s(end - load.window_start_ns), None, 0)
    value = sum(_rate(stream[:rounds]) for stream in load.streams)
    per_round = [sum(_rate(stream[index : index + 1]) for stream in load.streams) for index in range(rounds)]
    return Throughput(value, _around(value, per_round, confidence), rounds)


def window_s(load: PointLoad) -> float | None:
    """Mean over workers of the time their counted requests span [s]; at an arrival rate the length of the window."""
    if load.rate is not None:
        open_, shut = load.window_start_ns, load.window_end_ns
        return None if open_ is None or shut is None else ns_to_s(shut - open_)
    rounds = load.rounds
    if rounds == 0:
        return None
    return fmean(ns_to_s(done_ns(stream[rounds - 1]) - stream[0].planned_ns) for stream in load.streams)


def done_ns(trace: Trace) -> int:
    return trace.planned_ns if trace.done_ns is None else trace.done_ns


def _of_arrivals(load: PointLoad, confidence: float, now_ns: int | None) -> Throughput:
    """Tokens received while the window was open / its length; the interval from slices as long as a request at least."""
    sent = {*load.warm_up, *load.window, *load.going, *load.unended.values(), *load.drained, *load.after}
    latest = max((trace.end_ns or 0 for trace in sent), default=0)
    start, end = load.window_start_ns, load.known_ns(latest if now_ns is None else now_ns) or 0
    if start is None or end <= start:
        return Throughput(None, None, 0)
    ended = [done_ns(trace) - trace.planned_ns for trace in load.window if trace.status == "ok"]
    count = min(int((end - start) / max(fmean(ended), 1)), MOST_SLICES) if ended else 0
    edges = [start + (end - start) * index // max(count, 1) for index in range(max(count, 1) + 1)]
    received = [0] * max(count, 1)
    for trace in sent:
        times, counts = trace.chunks.times, trace.chunks.counts
        if not times or times[-1] < start or times[0] >= end:
            continue
        first = max(bisect_right(edges, times[0]) - 1, 0)
        at = bisect_left(times, edges[first])
        while first < len(received) and at < len(times):
            upto = bisect_left(times, edges[first + 1], at)
            received[first] += sum(counts[at:upto])
            at, first = upto, first + 1
    total = sum(received)
    if total == 0:
        return Throughput(None, None, 0)
    value = total / ns_to_s(end - start)
    if count < LEAST_SLICES:
        return Throughput(value, None, 0)
    rates = [tokens / ns_to_s(after - before) for tokens, before, after in zip(received, edges, edges[1:], strict=False)]
    return Throughput(value, _around(value, rates, confidence), count)


def _around(value: float, series: Sequence[float], confidence: float) -> tuple[float, float] | None:
    reach = half_width(series, at_each_look(confidence))
    return None if reach is None else (max(value - reach, 0.0), value + reach)


def _rate(traces: Sequence[Trace]) -> float:
    duration = done_ns(traces[-1]) - traces[0].planned_ns
    return sum(trace.received_tokens for trace in traces) / ns_to_s(duration) if duration > 0 else 0.0
