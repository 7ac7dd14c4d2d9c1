# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How many processes the load client of a point needs: by the plan, else by what one was measured to hold."""

from __future__ import annotations

import math
import os

from .plan import GatePlan, Point

# Counted on from one process: half of what it was seen to hold, docs/metrics.md, Reach (benchmarks/gate/reach.py).
HELD_STREAMS, HELD_TOKENS_PER_S = 512, 15_000


def client_processes(plan: GatePlan, point: Point, *, cores: int | None = None) -> int:
    """Return the number of processes [1 …], never more than requests in flight.

    Unless the plan names it: as many as the planned streams and the expected tokens/s need (arrivals x answer length, and
    what a limit asks for), but no more than this machine has processors. More may come, which shows in how busy one is.
    """
    if plan.client_processes is not None:
        return min(plan.client_processes, point.concurrency)
    expected = [limit.value for limit in point.limits if limit.name == "min_output_tokens_per_s"]
    if point.rate is not None:
        expected.append(point.rate * plan.output_tokens)
    streams = point.concurrency if point.rate is None else 1
    wanted = max(math.ceil(streams / HELD_STREAMS), math.ceil(max(expected, default=0.0) / HELD_TOKENS_PER_S))
    available = len(os.sched_getaffinity(0)) if cores is None else cores
    return max(min(wanted, available, point.concurrency), 1)
