# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules that name why time is lost: launches, eager passes, empty stages, a slow stage, idle cards."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from .diagnosis_evidence import Finding, Observed, finding, number

# Kernel launches per decoder layer and token of an MLA + MoE model without graphs: an estimate, not a measurement.
LAUNCHES_PER_LAYER = (20, 25)
GAP_RATIO = 1.25
"""Decode slower than the bound by this factor leaves room for a launch-bound explanation."""
LOW_POWER_RATIO = 0.30
BUSY_RATIO, BUSY_POWER_RATIO = 0.90, 0.50
FILL_RATIO = 0.65
"""Scaling below this share of what the stages allow is a badly filled pipeline."""
EAGER_TOLERANCE = 0.99
SLOW_STAGE_FACTOR, SLOW_STAGE_MARGIN = 1.5, 0.20


def launch(seen: Observed) -> Finding | None:
    """Decode waits for kernel launches: passes ran eagerly, and time is lost that memory reads do not explain."""
    ratio = seen.graph_ratio
    eager = ratio < 0.5 if ratio is not None else seen.graphs_resolved_off
    if not eager:
        return None
    single = seen.point(1)
    tpot = number(((single or {}).get("tpot_ms") or {}).get("p50"))
    bound = number((single or {}).get("bound_tokens_per_s"))
    power = seen.power_ratio
    ideal: float | None = None
    gap: float | None = None
    launch_us: list[float] | None = None
    if tpot is not None and bound:
        ideal = 1000 / bound
        if tpot < GAP_RATIO * ideal:
            return None
        gap = tpot - ideal
        lost = f"one token takes {tpot:.1f} ms where reading the weights takes {ideal:.1f} ms; {gap:.1f} ms are lost"
        if seen.num_layers:
            launches = [seen.num_layers * count for count in LAUNCHES_PER_LAYER]
            launch_us = [gap * 1000 / launches[1], gap * 1000 / launches[0]]
            each = f"{launch_us[0]:.0f}–{launch_us[1]:.0f} µs"
            lost += f", which is {launches[0]}–{launches[1]} launches of {each} ({seen.num_layers} layers)"
    elif power is not None and power < LOW_POWER_RATIO:
        lost = f"the cards draw {100 * power:.0f} % of their power limit"
    else:
        return None
    passes = (
        f"{100 * (1 - ratio):.0f} % of decode passes ran without a CUDA graph"
        if ratio is not None
        else "the server resolved decode graphs to off (it keeps no pass counters)"
    )
    return finding(
        "GATE-LAUNCH",
        f"decode is bound by kernel launches, not by memory: {passes}; {lost}",
        "let decode run as CUDA graphs: drop what turns them off (the check names it with file and line), start and gate again",
        graph_pass_ratio=ratio,
        eager_passes=seen.eager_passes,
        graph_passes=seen.graph_passes,
        graphs_resolved_off=seen.graphs_resolved_off if ratio is None else None,
        tpot_p50_ms=tpot,
        bound_tpot_ms=ideal,
        gap_ms=gap,
        launch_us_low_high=launch_us,
        power_ratio=power,
    )


def eager(seen: Observed, *, said: bool) -> Finding | None:
    ratio, required = seen.graph_ratio, seen.required_graph_ratio
    if ratio is None or ratio >= (EAGER_TOLERANCE if required is None else required) or (said and required is None):
        return None
    needed = f"; the plan requires {100 * required:g} %" if required is not None else ""
    return finding(
        "GATE-EAGER",
        f"only {100 * ratio:.1f} % of decode passes ran as a CUDA graph{needed}",
        "compare the batch sizes in flight with the sizes graphs were captured for; see the start-up log for a failed capture",
        graph_pass_ratio=ratio,
        required=required,
        graph_passes=seen.graph_passes,
        eager_passes=seen.eager_passes,
    )


def fill(seen: Observed) -> Finding | None:
    """Stages stand idle although requests enough for all of them are in flight: throughput does not scale."""
    single, pp_size = number((seen.point(1) or {}).get("output_tokens_per_s")), seen.pp_size
    if not single or pp_size is None or pp_size < 2:
        return None
    worst: tuple[float, Mapping[str, Any], float, int] | None = None
    for point in seen.points:
        concurrency, speed = point.get("concurrency"), number(point.get("output_tokens_per_s"))
        if not isinstance(concurrency, int) or concurrency < 2 or speed is None:
            continue
        possible = min(concurrency, pp_size)
        share = speed / single / possible
        if worst is None or share < worst[0]:
            worst = (share, point, speed, possible)
    if worst is None or worst[0] >= FILL_RATIO:
        return None
    busy, power = seen.mean_utilization, seen.power_ratio
    if busy is not None and power is not None and busy >= BUSY_RATIO and power >= BUSY_POWER_RATIO:
        return None
    share, point, speed, possible = worst
    concurrency, bound = point["concurrency"], number(point.get("bound_tokens_per_s"))
    idle = "" if busy is None else f"; stages were busy {100 * busy:.0f} % of the time on average"
    reach = "" if bound is None else f"; a filled pipeline is bounded by {bound:.0f} tok/s"
    return finding(
        "GATE-FILL",
        f"the pipeline is poorly filled: {concurrency} requests in flight give {speed:.1f} tok/s, {speed / single:.1f} × one "
        f"request, where {possible} of {pp_size} stages could work at once ({100 * share:.0f} % of it){idle}; filled at the "
        f"same speed per stage it would give {single * possible:.0f} tok/s{reach}",
        "look at how requests share micro-batches: lower pp_max_micro_batch_size so that requests spread over all slots, "
        "then raise pp_async_batch_depth; measure each, since neither is proven by its flag",
        concurrency=concurrency,
        pp_size=pp_size,
        tokens_per_s=speed,
        single_tokens_per_s=single,
        scaling=speed / single,
        possible_scaling=possible,
        fill_ratio=share,
        filled_tokens_per_s=single * possible,
        bound_tokens_per_s=bound,
        mean_utilization_ratio=busy,
        stage_utilization_ratio=seen.stage_utilization(),
    )


def slow_stage(seen: Observed) -> Finding | None:
    """One stage works much longer than the rest, more than its share of the weights explains."""
    busy = seen.stage_utilization()
    if busy is None or len(busy) < 3:
        return None
    reads = seen.stage_read_bytes
    share = (
        [value / (sum(reads) / len(reads)) for value in reads]
        if reads is not None and len(reads) == len(busy)
        else [1.0] * len(busy)
    )
    fair = [value / part for value, part in zip(busy, share, strict=True)]
    slow = max(range(len(fair)), key=fair.__getitem__)
    typical = statistics.median(value for rank, value in enumerate(fair) if rank != slow)
    # Without the model's shape the last stage is let off: it also reads the head.
    factor = SLOW_STAGE_FACTOR if reads is not None or slow != len(busy) - 1 else 2 * SLOW_STAGE_FACTOR
    if fair[slow] < factor * typical or busy[slow] - typical * share[slow] < SLOW_STAGE_MARGIN:
        return None
    return finding(
        "GATE-SLOW-STAGE",
        f"stage {slow} holds the others up: it is busy {100 * busy[slow]:.0f} % of the time, the rest {100 * typical:.0f} % "
        "for the same work",
        f"look at the card of stage {slow}: clocks, throttling, PCIe link width, another process; then at the layer split",
        stage=slow,
        stage_utilization_ratio=busy,
        rest_median_ratio=typical,
        expected_share=share if reads is not None else None,
    )


def power(seen: Observed) -> Finding | None:
    power, watts = seen.power_ratio, seen.mean_power_w
    limits = [number((gpu.get("power_w") or {}).get("limit")) for gpu in seen.gpus]
    if power is None or watts is None or power >= LOW_POWER_RATIO:
        return None
    most = max((point["concurrency"] for point in seen.points if isinstance(point.get("concurrency"), int)), default=None)
    if most is not None and seen.pp_size is not None and most < seen.pp_size:
        return None  # fewer requests than stages: idle cards are expected
    limit = next((value for value in limits if value), 0.0)
    same = "" if len(set(limits)) == 1 else " (limits differ)"
    return finding(
        "GATE-POWER",
        f"the cards mostly wait: {watts:.0f} W of {limit:.0f} W{same} per card on average over {len(seen.gpus)} cards",
        "read it together with the findings above: power this low under load means launches, links or empty stages, not the card",
        mean_power_w=watts,
        limit_w=limit,
        power_ratio=power,
        gpus=len(seen.gpus),
        power_w=[number((gpu.get("power_w") or {}).get("mean")) for gpu in seen.gpus],
    )
