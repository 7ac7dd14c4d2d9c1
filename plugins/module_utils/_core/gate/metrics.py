# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Figures of one point from its traces. Formulas are in docs/metrics.md; what cannot be told is None."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..units import ns_to_ms, ns_to_s
from .load import PointLoad
from .plan_limits import LATENCIES, PERCENTILES, Limit
from .stats import half_width, percentile
from .stream import Trace


def ttft_ms(trace: Trace) -> float | None:
    """First chunk with text, minus planned start."""
    return None if trace.first_ns is None else ns_to_ms(trace.first_ns - trace.planned_ns)


def e2e_ms(trace: Trace) -> float | None:
    """Last chunk with text, minus planned start."""
    return None if trace.end_ns is None else ns_to_ms(trace.end_ns - trace.planned_ns)


def itl_ms(trace: Trace) -> list[float]:
    """Gaps between neighbouring chunks with text; TTFT + their sum = E2E."""
    return [ns_to_ms(after - before) for before, after in itertools.pairwise(trace.chunks.times)]


def tpot_ms(trace: Trace) -> float | None:
    """(E2E - TTFT) / (output_tokens - 1), tokens from usage; None below two tokens."""
    if trace.first_ns is None or trace.end_ns is None or trace.output_tokens is None or trace.output_tokens < 2:
        return None
    return ns_to_ms(trace.end_ns - trace.first_ns) / (trace.output_tokens - 1)


@dataclass(frozen=True)
class Throughput:
    """Output tokens per second with its interval; ``rounds`` is the number of independent values behind it."""

    value: float | None
    ci: tuple[float, float] | None
    rounds: int


def throughput(load: PointLoad, confidence: float, *, now_ns: int | None = None) -> Throughput:
    """Return output throughput over whole request cycles.

    Each worker contributes its first K completed requests, K being the same for all: tokens / time from the planned
    start of the first to the end of the K-th. The sum over workers is the figure. So every window spans whole cycles
    (time to first token counts in full), and stopping after a whole round does not favour fast ones. The interval comes
    from the K round figures by batch means. Without a whole round: tokens seen / time so far, without an interval.
    """
    rounds = min(map(len, load.streams))
    if rounds == 0:
        end = load.window_end_ns if load.window_end_ns is not None else now_ns
        if load.window_start_ns is None or end is None or end <= load.window_start_ns or load.tokens_seen == 0:
            return Throughput(None, None, 0)
        return Throughput(load.tokens_seen / ns_to_s(end - load.window_start_ns), None, 0)
    value = sum(_rate(stream[:rounds]) for stream in load.streams)
    per_round = [sum(_rate(stream[index : index + 1]) for stream in load.streams) for index in range(rounds)]
    reach = half_width(per_round, confidence)
    ci = None if reach is None else (max(value - reach, 0.0), value + reach)
    return Throughput(value, ci, rounds)


def window_s(load: PointLoad) -> float | None:
    """Mean over workers of the time their counted requests span [s]."""
    rounds = min(map(len, load.streams))
    if rounds == 0:
        return None
    return fmean(ns_to_s(_done(stream[rounds - 1]) - stream[0].planned_ns) for stream in load.streams)


def in_flight_mean(load: PointLoad) -> float | None:
    """Mean number of requests really in flight over the window, by the client's own clock."""
    start, end = load.window_start_ns, load.window_end_ns
    if start is None or end is None or end <= start:
        return None
    busy = sum(max(min(_done(trace), end) - max(trace.planned_ns, start), 0) for trace in load.window + load.drained)
    return busy / (end - start)


def latencies(traces: Sequence[Trace]) -> dict[str, list[float]]:
    """Return the ascending samples of each latency; ITL pools all gaps of all requests, so a stall stays visible."""
    good = [trace for trace in traces if trace.status == "ok"]
    return {
        "ttft": sorted(value for value in map(ttft_ms, good) if value is not None),
        "tpot": sorted(value for value in map(tpot_ms, good) if value is not None),
        "itl": sorted(gap for trace in good for gap in itl_ms(trace)),
        "e2e": sorted(value for value in map(e2e_ms, good) if value is not None),
    }


def percentiles(ordered: Sequence[float]) -> dict[str, Any]:
    """Return p50, p90, p99 [ms] and n; a percentile without enough samples is None."""
    return {**{rank: _rounded(percentile(ordered, share)) for rank, share in PERCENTILES.items()}, "n": len(ordered)}


def good(trace: Trace, limits: Sequence[Limit]) -> bool:
    """Tell whether one request was answered and met each latency limit of its point by itself (ITL: its own percentile)."""
    if trace.status != "ok":
        return False
    values = {"ttft": ttft_ms(trace), "tpot": tpot_ms(trace), "e2e": e2e_ms(trace)}
    for limit in limits:
        if limit.latency is None or limit.rank is None:
            continue
        if limit.latency == "itl":
            gaps = sorted(itl_ms(trace))
            value = gaps[int(PERCENTILES[limit.rank] * (len(gaps) - 1))] if gaps else None
        else:
            value = values[limit.latency]
        if value is None or value > limit.value:
            return False
    return True


def cached_ratio(traces: Sequence[Trace]) -> float | None:
    """Share of prompt tokens that the server says it had cached; None when it does not say."""
    said = [trace for trace in traces if trace.cached_tokens is not None and trace.input_tokens]
    total = sum(trace.input_tokens or 0 for trace in said)
    return sum(trace.cached_tokens or 0 for trace in said) / total if total else None


def sample(trace: Trace, *, point: int, concurrency: int, request: int, phase: str) -> dict[str, Any]:
    """Return the line of samples.jsonl for one request."""
    return {
        "point": point,
        "concurrency": concurrency,
        "request": request,
        "phase": phase,
        "planned_ns": trace.planned_ns,
        "first_ns": trace.first_ns,
        "first_answer_ns": trace.first_answer_ns,
        "end_ns": trace.end_ns,
        "chunks": list(trace.chunks),
        "input_tokens": trace.input_tokens,
        "output_tokens": trace.output_tokens,
        "cached_tokens": trace.cached_tokens,
        "status": trace.status,
        "error": trace.error,
        "ttft_ms": _rounded(ttft_ms(trace)),
        "tpot_ms": _rounded(tpot_ms(trace)),
        "e2e_ms": _rounded(e2e_ms(trace)),
    }


def point_figures(load: PointLoad, limits: Sequence[Limit], confidence: float) -> dict[str, Any]:
    """Return the measured part of one point of the result (without limits, bound, verdict)."""
    traces = load.window
    rate = throughput(load, confidence)
    samples = latencies(traces)
    inputs = [trace.input_tokens for trace in traces if trace.input_tokens is not None]
    outputs = [trace.output_tokens for trace in traces if trace.output_tokens is not None]
    met = sum(good(trace, limits) for trace in traces)
    figures: Mapping[str, Any] = {f"{name}_ms": percentiles(samples[name]) for name in LATENCIES}
    return {
        "concurrency": load.concurrency,
        "rate": None,
        "output_tokens_per_s": _rounded(rate.value),
        "ci": None if rate.ci is None else [_rounded(rate.ci[0]), _rounded(rate.ci[1])],
        "rounds": rate.rounds,
        **figures,
        "requests": {
            "planned": len(traces) + len(load.drained),
            "ok": sum(trace.status == "ok" for trace in traces),
            "failed": load.failed,
            "cancelled": len(load.drained),
            "warm_up": len(load.warm_up),
        },
        "goodput_ratio": met / len(traces) if traces else None,
        "input_tokens": {"mean": fmean(inputs) if inputs else None},
        "output_tokens": {"mean": fmean(outputs) if outputs else None},
        "cached_tokens_ratio": cached_ratio(traces),
        "in_flight": {"mean": _rounded(in_flight_mean(load))},
        "window_s": _rounded(window_s(load)),
    }


def _rate(traces: Sequence[Trace]) -> float:
    duration = _done(traces[-1]) - traces[0].planned_ns
    return sum(trace.received_tokens for trace in traces) / ns_to_s(duration) if duration > 0 else 0.0


def _done(trace: Trace) -> int:
    return trace.planned_ns if trace.done_ns is None else trace.done_ns


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
