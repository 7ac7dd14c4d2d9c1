# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about passes and stages: launches, eager passes, stages that stand empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .diagnosis_cards import GOOD_RATIO, LOW_POWER_RATIO
from .diagnosis_evidence import Finding, Observed, cards_of, finding, number, part, working

# Kernel launches per decoder layer and token of an MLA + MoE model without graphs: an estimate, not a measurement.
LAUNCHES_PER_LAYER = (20, 25)
LOST_UNKNOWN = 0.3
"""What eager passes cost where no bound tells: the published run without graphs lost as much."""
GAP_RATIO = 1.25
"""Decode slower than the bound by this factor leaves room for a launch-bound explanation."""
BUSY_RATIO, BUSY_POWER_RATIO = 0.90, 0.50
FILL_RATIO = 0.65
"""Scaling below this share of what the stages allow is a badly filled pipeline."""
REACHABLE_RATIO = 0.80
"""The same where it is known how unevenly the weights lie on the stages, so that only waste is left."""
CROWDED_RATIO = 0.75
SPREAD_ADVICE = (
    "look at how requests share micro-batches: lower pp_max_micro_batch_size so that requests spread over all slots, "
    "then raise pp_async_batch_depth; measure each, since neither is proven by its flag"
)
UNCROWDED_ADVICE = (
    "requests are spread over micro-batches already, so the stages wait for something else: see to the causes above first, then "
    "raise pp_async_batch_depth and measure"
)
EAGER_TOLERANCE = 0.99


def launch(seen: Observed) -> Finding | None:
    """Decode waits for kernel launches: passes ran eagerly, and time is lost that memory reads do not explain."""
    single = seen.point(1)
    # The time of one token is looked at where one request is in flight, and so are the passes that gave it.
    ratio = seen.graph_ratio if (own := pass_ratio(single)) is None else own
    eager = ratio < 0.5 if ratio is not None else seen.graphs_resolved_off
    if not eager or seen.device == "cpu":
        return None  # A CPU has no graphs to run.
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
        lost=LOST_UNKNOWN if tpot is None or ideal is None else 1 - min(ideal / GOOD_RATIO / tpot, 1.0),
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
    required = seen.required_graph_ratio
    points = [(own, point) for point in seen.points if (own := pass_ratio(point)) is not None]
    ratio, point = min(points, key=lambda pair: pair[0], default=(seen.graph_ratio, None))
    if seen.device == "cpu" and required is None:
        return None
    if ratio is None or ratio >= (EAGER_TOLERANCE if required is None else required) or (said and required is None):
        return None
    needed = f"; the plan requires {100 * required:g} %" if required is not None else ""
    size = number(part(point, "engine").get("decode_batch"))
    where = "" if point is None else f" at {point.get('concurrency')} in flight"
    sizes = "" if size is None else f", {size:.1f} requests a pass"
    return finding(
        "GATE-EAGER",
        f"only {100 * ratio:.1f} % of decode passes ran as a CUDA graph{where}{sizes}{needed}",
        "compare the batch sizes in flight with the sizes graphs were captured for; see the start-up log for a failed capture",
        lost=LOST_UNKNOWN * (1 - ratio),
        concurrency=None if point is None else point.get("concurrency"),
        decode_batch=size,
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
    worst: tuple[float, Mapping[str, Any], float, float] | None = None
    for point in seen.closed:
        concurrency, speed = point.get("concurrency"), number(point.get("output_tokens_per_s"))
        if not isinstance(concurrency, int) or concurrency < 2 or speed is None:
            continue
        inside = working(point)
        there = concurrency if inside is None else min(inside, concurrency)
        possible = min(there, pp_size, seen.reachable or pp_size)
        share = speed / single / possible if possible > 0 else 1.0
        if worst is None or share < worst[0]:
            worst = (share, point, speed, possible)
    if worst is None or worst[0] >= (FILL_RATIO if seen.reachable is None else REACHABLE_RATIO):
        return None
    share, point, speed, possible = worst
    busy, power, slots = seen.mean_utilization, seen.power_ratio, micro_batches(point)
    if busy is not None and power is not None and busy >= BUSY_RATIO and power >= BUSY_POWER_RATIO:
        return None
    if busy is None and (slots is None or not crowded(point, pp_size)):
        return None  # Nobody saw a stage idle.
    concurrency, bound = point["concurrency"], number(point.get("bound_tokens_per_s"))
    idle = "" if busy is None else f"; stages were busy {100 * busy:.0f} % of the time on average"
    size = number(part(point, "engine").get("decode_batch"))
    shared = "" if slots is None or size is None else f"; they share {slots:.1f} micro-batches of {size:.1f}"
    reach = "" if bound is None else f"; a filled pipeline is bounded by {bound:.0f} tok/s"
    return finding(
        "GATE-FILL",
        f"the pipeline is poorly filled: {concurrency} requests in flight give {speed:.1f} tok/s, {speed / single:.1f} × one "
        f"request, where {possible:.3g} of {pp_size} stages could work at once ({100 * share:.0f} % of it){shared}{idle}; "
        f"filled at the same speed per stage it would give {single * possible:.0f} tok/s{reach}",
        SPREAD_ADVICE if slots is None or crowded(point, pp_size) else UNCROWDED_ADVICE,
        lost=1 - share,
        concurrency=concurrency,
        pp_size=pp_size,
        tokens_per_s=speed,
        single_tokens_per_s=single,
        scaling=speed / single,
        possible_scaling=possible,
        fill_ratio=share,
        filled_tokens_per_s=single * possible,
        bound_tokens_per_s=bound,
        micro_batches=slots,
        micro_batch_size=size,
        mean_utilization_ratio=busy,
        stage_utilization_ratio=seen.stage_utilization(cards_of(point)) or seen.stage_utilization(),
    )


def pass_ratio(point: Mapping[str, Any] | None) -> float | None:
    """Share of the decode passes of a point that ran as a graph; None when the engine counted none."""
    passes = part(part(part(point, "engine"), "graph_passes"), "decode")
    graph, eager_passes = number(passes.get("graph")), number(passes.get("eager"))
    total = (graph or 0.0) + (eager_passes or 0.0)
    return (graph or 0.0) / total if total else None


def micro_batches(point: Mapping[str, Any]) -> float | None:
    """Mean number of micro-batches under way: requests in the engine / tokens per decode pass; None where it counts neither."""
    inside, size = working(point), number(part(point, "engine").get("decode_batch"))
    return None if inside is None or not size else inside / size


def crowded(point: Mapping[str, Any], pp_size: int) -> bool:
    """Tell whether requests share fewer micro-batches than could be under way."""
    slots, inside = micro_batches(point), working(point)
    return slots is not None and inside is not None and slots < CROWDED_RATIO * min(inside, pp_size)


def crowds(seen: Observed, found: Finding) -> bool:
    """Tell whether a poor fill was seen to come from crowding; else stages stand empty for a reason of their own."""
    point = seen.point(int(found["evidence"]["concurrency"]))
    return point is not None and seen.pp_size is not None and crowded(point, seen.pp_size)
