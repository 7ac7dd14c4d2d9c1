# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a point's figure may be believed at all: counts, lengths, cache, passes, cards, and the client itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..units import ns_to_ms
from .load import PointLoad
from .plan import GatePlan
from .probes import beyond, degenerate
from .stream import Trace
from .verdict import Validity

# Fewer events than this share of the counted tokens: the count cannot be confirmed by what really arrived.
CONFIRMED_SHARE = 0.5
BUSY_CLIENT = 0.9
# Garbage in nearly every answer refuses the server; some may be what a model says to prompts without a meaning.
GARBAGE_SHARE, GARBAGE_DOUBT, GARBAGE_LEAST = 0.9, 0.02, 3
IN_FLIGHT_SHARE = 0.9
COUNTER_TOLERANCE = 0.02
# Health checks generate a token each.
COUNTER_SLACK = 64
# An open loop's backlog wanders; growth beyond both of these is a server slower than the arrivals.
BACKLOG_SHARE, BACKLOG_SPREAD = 0.05, 4.0
# A client may set out this late, or by this share of the usual time to first token, with one request of a hundred.
LATE_NS, LATE_SHARE, LATE_REQUESTS, LATE_LEAST = 10_000_000, 0.1, 0.01, 2


def check_load(load: PointLoad, plan: GatePlan, *, stream_interval: int | None) -> Validity:
    """Check what came over the wire."""
    traces = load.window
    validity = Validity()
    failed = [trace for trace in load.warm_up + traces if trace.status == "failed"]
    if failed:
        sent = len(load.warm_up) + len(traces)
        validity.wrong.append(f"{len(failed)} of {sent} requests failed, the first: {failed[0].error}")
    ok = [trace for trace in traces if trace.status == "ok"]
    if not ok:
        if not failed:
            validity.doubtful.append(f"no request was completed in the window (stopped by {load.stop})")
        return validity
    _check_counts(ok, plan, validity, stream_interval or 1)
    _check_inputs(ok, plan, validity)
    garbage = [trace for trace in ok if degenerate(trace, plan)]
    if len(garbage) >= GARBAGE_SHARE * len(ok):
        validity.wrong.append(f"the answers are garbage, such as {garbage[0].text[:40]!r}")
    elif len(garbage) >= GARBAGE_LEAST and len(garbage) > GARBAGE_DOUBT * len(ok):
        validity.doubtful.append(f"{len(garbage)} of {len(ok)} answers are garbage, such as {garbage[0].text[:40]!r}")
    return validity


def cache_limit(plan: GatePlan, shared_tokens: float, input_tokens: float | None) -> float:
    """Return the cached share up to which prompts count as fresh: what they all begin with (a chat template) may be cached."""
    return plan.correctness.max_cached_tokens_ratio + shared_tokens / (input_tokens or plan.input_tokens)


def check_cache(ratio: float | None, limit: float, *, fresh: bool = True) -> list[str]:
    """Return why cached prompts spoil the figure; what nobody tells is a doubt where prompts were not made to differ."""
    if ratio is None:
        unknown = "the prompts were sent as they are, and the server does not tell how much of them came from its cache"
        return [] if fresh else [unknown]
    if ratio <= limit:
        return []
    return [f"{ratio:.1%} of the prompt tokens came from the prefix cache, above {limit:.2%}: prompts were not fresh"]


def check_passes(passes: Mapping[str, Mapping[str, int]] | None, require: Mapping[str, float]) -> Validity:
    """Check the graph pass ratios that the plan requires against the engine's own counters."""
    validity = Validity()
    for name, needed in require.items():
        phase = name.split("_", 1)[0]
        counts = None if passes is None else passes.get(phase)
        total = 0 if counts is None else counts["graph"] + counts["eager"]
        if counts is None or total == 0:
            validity.doubtful.append(f"{name}: required {needed:g}, but the engine counted no {phase} pass (--enable-metrics)")
        elif counts["graph"] / total < needed:
            share = counts["graph"] / total
            validity.wrong.append(f"{name}: required {needed:g}, measured {share:.3g} (n = {total} passes): fail")
    return validity


def check_bound(low: float | None, bound: float | None) -> list[str]:
    """Return why a figure that is too good is not believed."""
    if low is None or bound is None or low <= bound:
        return []
    return [f"{low:.4g} tok/s is above the bound of {bound:.4g} tok/s: wrong token counts, cached prompts or speculation"]


def check_counters(counted: float | None, load: PointLoad, plan: GatePlan) -> list[str]:
    """Return why the engine's own count of generated tokens contradicts what usage says; None counted gives no reason.

    What was cut or failed may be counted in part, so only what lies outside both ends is a contradiction.
    """
    least = tokens_of(load)
    if counted is None or not least:
        return []
    others = sum(trace.status != "ok" for trace in load.warm_up + load.window + load.after) + len(load.drained)
    most = least + others * plan.output_tokens
    if counted < least * (1 - COUNTER_TOLERANCE):
        return [f"usage says {least} tokens, but the engine itself counted {counted:.0f}: the figure is too high"]
    if counted > most * (1 + COUNTER_TOLERANCE) + COUNTER_SLACK:
        return [
            f"the engine counted {counted:.0f} tokens where this load asked for {most} at most: "
            "other clients load the server, or usage says too little"
        ]
    return []


def tokens_of(load: PointLoad) -> int:
    """Tokens that usage says were generated for the requests of a point that ended well."""
    return sum(trace.output_tokens or 0 for trace in load.warm_up + load.window + load.after if trace.status == "ok")


def check_client(busy: Mapping[str, float], load: PointLoad, in_flight: float | None) -> list[str]:
    """Return why the client and not the server may have set the figure; ``busy``: share of a processor by process of it."""
    reasons = [
        f"{name} was busy {share:.0%} of the time: the figure may be its own ceiling (more client_processes hold more)"
        for name, share in busy.items()
        if share > BUSY_CLIENT
    ]
    if load.rate is None and in_flight is not None and not load.failed and in_flight < IN_FLIGHT_SHARE * load.concurrency:
        reasons.append(f"only {in_flight:.3g} requests were in flight on average, {load.concurrency} were planned")
    return reasons


def backlog(load: PointLoad) -> tuple[int, int] | None:
    """Return how many requests were in the server at both ends of the window of an open loop; None where it is none."""
    start, end = load.window_start_ns, load.window_end_ns
    if load.rate is None or start is None or end is None:
        return None
    sent = (*load.warm_up, *load.window, *load.drained, *load.after)

    def inside(moment: int) -> int:
        return sum(trace.planned_ns < moment and (trace.done_ns is None or trace.done_ns > moment) for trace in sent)

    return inside(start), inside(end)


def falls_behind(load: PointLoad) -> str | None:
    """Say that the server does not keep up with the arrivals: more is left at the end than chance explains."""
    left, arrived = backlog(load), len(load.window) + len(load.drained)
    if left is None or left[1] - left[0] <= max(BACKLOG_SHARE * arrived, BACKLOG_SPREAD * math.sqrt(arrived)):
        return None
    return (
        f"the server does not keep up with {load.rate:g} requests/s: {left[0]} were in it when the window opened, "
        f"{left[1]} after {arrived} more had arrived"
    )


def check_schedule(load: PointLoad) -> list[str]:
    """Return why an open loop was not that of the plan: not settled in time, or a client that set out late."""
    reasons = (
        [] if load.settled else ["the load had not settled when the window opened: more was in flight than had been answered"]
    )
    firsts = sorted(trace.first_ns - trace.planned_ns for trace in load.window if trace.first_ns is not None)
    typical = firsts[len(firsts) // 2] if firsts else 0
    allowed = max(LATE_NS, round(LATE_SHARE * typical))
    late = [value for value in load.late_ns if value > allowed]
    if len(late) < LATE_LEAST or len(late) <= LATE_REQUESTS * len(load.late_ns):
        return reasons
    return [
        *reasons,
        f"the load client set out late with {len(late)} of {len(load.late_ns)} requests, by up to "
        f"{ns_to_ms(max(late)):.0f} ms: it could not keep the schedule",
    ]


def _check_counts(ok: Sequence[Trace], plan: GatePlan, validity: Validity, stream_interval: int) -> None:
    wanted = plan.output_tokens
    uncounted = sum(trace.output_tokens is None for trace in ok)
    if uncounted:
        validity.doubtful.append(f"{uncounted} of {len(ok)} answers came without usage: their tokens cannot be counted")
    counted = [trace for trace in ok if trace.output_tokens is not None]
    over = [trace for trace in counted if (trace.output_tokens or 0) > wanted]
    short = [trace for trace in counted if (trace.output_tokens or 0) < wanted]
    if over:
        most = max(over, key=lambda trace: trace.output_tokens or 0)
        validity.wrong.append(f"{len(over)} of {len(ok)} answers: {beyond(most, wanted, stream_interval)}")
    if len(short) > 0.01 * len(ok):
        least = min(trace.output_tokens or 0 for trace in short)
        validity.doubtful.append(
            f"{len(short)} of {len(ok)} answers ended before {wanted} tokens (as short as {least}): ignore_eos is not honoured"
        )
    if any(trace.events > (trace.output_tokens or 0) + 1 for trace in counted):
        worst = max(counted, key=lambda trace: trace.events - (trace.output_tokens or 0))
        validity.doubtful.append(f"usage says {worst.output_tokens} tokens, but {worst.events} chunks with text arrived")
    tokens, events = sum(trace.output_tokens or 0 for trace in counted), sum(trace.events for trace in counted)
    if counted and events * stream_interval < CONFIRMED_SHARE * tokens:
        validity.doubtful.append(f"usage says {tokens} tokens, but only {events} chunks arrived: the count cannot be confirmed")


def _check_inputs(ok: Sequence[Trace], plan: GatePlan, validity: Validity) -> None:
    known = [trace.input_tokens for trace in ok if trace.input_tokens is not None]
    if not known:
        validity.doubtful.append("the server does not say how long the prompts were")
        return
    if plan.prompts is not None:
        return
    tolerance = plan.correctness.length_tolerance_ratio
    mean = sum(known) / len(known)
    if abs(mean - plan.input_tokens) > tolerance * plan.input_tokens:
        validity.doubtful.append(f"prompts held {mean:.4g} tokens, {plan.input_tokens} were planned")


def merged(parts: Sequence[Validity], doubts: Sequence[Any]) -> Validity:
    """Return all reasons of several checks as one."""
    wrong = [reason for part in parts for reason in part.wrong]
    return Validity(wrong, [reason for part in parts for reason in part.doubtful] + list(doubts))
