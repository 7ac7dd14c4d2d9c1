# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Figures of one point from its traces. Formulas are in docs/metrics.md; what cannot be told is None."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ..units import ns_to_ms
from .load import PointLoad
from .plan_limits import PERCENTILES, Limit
from .stats import percentile
from .stream import Trace
from .throughput import done_ns, throughput, window_s


def ttft_ms(trace: Trace) -> float | None:
    """First chunk with text, minus planned start."""
    return None if trace.first_ns is None else ns_to_ms(trace.first_ns - trace.planned_ns)


def ttft_answer_ms(trace: Trace) -> float | None:
    """First chunk with text of the answer itself, after any reasoning, minus planned start."""
    return None if trace.first_answer_ns is None else ns_to_ms(trace.first_answer_ns - trace.planned_ns)


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


def in_flight_mean(load: PointLoad) -> float | None:
    """Mean number of requests really in flight over the window, by the client's own clock."""
    start, end = load.window_start_ns, load.window_end_ns
    if start is None or end is None or end <= start:
        return None
    sent = (*load.warm_up, *load.window, *load.drained, *load.after)
    busy = sum(max(min(done_ns(trace), end) - max(trace.planned_ns, start), 0) for trace in sent)
    return busy / (end - start)


PER_REQUEST: Mapping[str, Callable[[Trace], list[float]]] = {
    "ttft": lambda trace: _present(ttft_ms(trace)),
    "ttft_answer": lambda trace: _present(ttft_answer_ms(trace)),
    "tpot": lambda trace: _present(tpot_ms(trace)),
    "itl": itl_ms,
    "e2e": lambda trace: _present(e2e_ms(trace)),
}


def latency(name: str, traces: Sequence[Trace]) -> list[list[float]]:
    """Return the samples of one latency, per request that succeeded and in the order of the requests.

    ITL has all gaps of a request, so that a stall stays visible when they are pooled.
    """
    measure = PER_REQUEST[name]
    return [measure(trace) for trace in traces if trace.status == "ok"]


def pooled(samples: Sequence[Sequence[float]]) -> list[float]:
    """Return all samples in ascending order."""
    return sorted(itertools.chain.from_iterable(samples))


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


def cut_misses(load: PointLoad, limits: Sequence[Limit]) -> int:
    """Count the requests that we cut at the end, yet after they had missed a limit on TTFT or E2E by their age alone.

    At an arrival rate those of the window are awaited for long: each that had to be cut is missed.
    """
    if load.rate is not None:
        return len(load.drained)
    most = {limit.latency: limit.value for limit in limits if limit.latency in ("ttft", "e2e")}

    def missed(trace: Trace) -> bool:
        age = ns_to_ms(done_ns(trace) - trace.planned_ns)
        first = ttft_ms(trace)
        waited = age if first is None else first
        return waited > most.get("ttft", math.inf) or age > most.get("e2e", math.inf)

    return sum(missed(trace) for trace in load.drained)


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


def input_mean(load: PointLoad) -> float | None:
    """Mean length of the prompts of the window by the server's own count."""
    inputs = [trace.input_tokens for trace in load.window if trace.input_tokens is not None]
    return fmean(inputs) if inputs else None


def request_counts(load: PointLoad, output_tokens: int) -> dict[str, int]:
    """Count the requests of the window by how they ended; of those that ended well, also how many were not as long as asked.

    planned = ok + failed + cancelled; timed_out are among the failed; short, long and uncounted (no usage) among the ok.
    """
    traces = load.window
    ok = [trace for trace in traces if trace.status == "ok"]
    lengths = [trace.output_tokens for trace in ok if trace.output_tokens is not None]
    return {
        "planned": len(traces) + len(load.drained),
        "ok": len(ok),
        "failed": load.failed,
        "timed_out": sum(trace.timed_out for trace in traces if trace.status == "failed"),
        "cancelled": len(load.drained),
        "short": sum(length < output_tokens for length in lengths),
        "long": sum(length > output_tokens for length in lengths),
        "uncounted": len(ok) - len(lengths),
        "warm_up": len(load.warm_up),
        **({} if load.rate is None else {"held_back": load.held_back}),
    }


def point_figures(load: PointLoad, limits: Sequence[Limit], confidence: float, *, output_tokens: int) -> dict[str, Any]:
    """Return the measured part of one point of the result (without limits, bound, verdict)."""
    traces = load.window
    rate = throughput(load, confidence)
    outputs = [trace.output_tokens for trace in traces if trace.output_tokens is not None]
    met, missed = sum(good(trace, limits) for trace in traces), cut_misses(load, limits)
    figures: Mapping[str, Any] = {f"{name}_ms": percentiles(pooled(latency(name, traces))) for name in PER_REQUEST}
    in_flight = in_flight_mean(load)
    return {
        # Of an open loop what was really in flight; what was allowed stands in the plan.
        "concurrency": load.concurrency if load.rate is None else max(round(in_flight or 0), 1),
        "rate": load.rate,
        "arrivals": load.arrivals,
        "output_tokens_per_s": _rounded(rate.value),
        "ci": None if rate.ci is None else [_rounded(rate.ci[0]), _rounded(rate.ci[1])],
        "rounds": rate.rounds,
        **figures,
        "requests": request_counts(load, output_tokens),
        "goodput_ratio": met / (len(traces) + missed) if traces or missed else None,
        "input_tokens": {"mean": input_mean(load)},
        "output_tokens": {"mean": fmean(outputs) if outputs else None},
        "cached_tokens_ratio": cached_ratio(traces),
        "in_flight": {"mean": _rounded(in_flight)},
        "window_s": _rounded(window_s(load)),
    }


def _present(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
