# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Micro-batch slots of a pipeline: how many there are, and whether the limits on requests can fill them."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context
from ..findings import Finding
from .pipeline import DEPTH, size_of

MICRO_BATCH = "pp_max_micro_batch_size"
REQUESTS = "max_running_requests"


def async_depth_range(ctx: Context) -> Iterator[Finding]:
    """Name an asynchronous depth that takes slots away, or that nothing uses. No release validates it (0.5.7 … 0.5.23)."""
    pp_size, depth = size_of(ctx, "pp_size"), ctx.asked(DEPTH)
    if pp_size is None or DEPTH not in ctx.table.fields or DEPTH not in ctx.parsed.explicit or not isinstance(depth, int):
        return
    spelled = ctx.parsed.explicit[DEPTH]
    place = {**ctx.at(spelled), "source": ctx.table.field_source.get(DEPTH)}
    if depth < 0:
        yield Finding(
            "SGA311",
            "error",
            f"{DEPTH} is {depth}: {pp_size} stages would share {pp_size + depth} micro-batch slots",
            why=f"SGLang keeps pp_size + {DEPTH} slots and checks nothing; with fewer slots than stages some stage always waits",
            do=f"write {spelled} 0 or more",
            **place,
        )
    elif depth > 0 and pp_size < 2:
        yield Finding(
            "SGA312",
            "info",
            f"{spelled} {depth} has no effect: there is no pipeline, pp_size is {pp_size}",
            why="only the scheduler of a pipeline reads it",
            do=f"remove {spelled}, or set pp_size",
            **place,
        )


def crowding(ctx: Context) -> Iterator[Finding]:
    """Advise where the limits let all requests crowd into fewer micro-batches than there are stages.

    SGLang fills one slot up to the limit before the next; requests that share a slot stay together.
    """
    pp_size, requests, limit = size_of(ctx, "pp_size"), ctx.asked(REQUESTS), ctx.asked(MICRO_BATCH)
    if pp_size is None or not isinstance(requests, int) or requests < 1:
        return
    explicit = isinstance(limit, int) and limit > 0
    per_slot = int(limit) if explicit else max(requests // pp_size, 1)
    filled = -(-requests // per_slot)
    if filled >= pp_size:
        return
    spelled = ctx.spelled(MICRO_BATCH) if explicit else ctx.spelled(REQUESTS)
    better = max(requests // pp_size, 1)
    yield Finding(
        "SGA313",
        "advice",
        f"{requests} requests of up to {per_slot} per micro-batch fill {filled} of {pp_size} stages; the others wait",
        why=f"{REQUESTS} {requests} / {MICRO_BATCH} {per_slot} = {filled} micro-batches at most, each in one stage at a time",
        do=f"set {MICRO_BATCH} to {better} or less"
        if requests >= pp_size
        else f"allow {pp_size} requests or more, or fewer stages",
        source=ctx.table.field_source.get(MICRO_BATCH),
        **ctx.at(spelled),
    )
