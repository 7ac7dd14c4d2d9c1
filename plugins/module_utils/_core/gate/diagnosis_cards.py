# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about cards and the links between them: a slow stage, slow links, kernels that do not suit the card, idle cards."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from .card_words import card_name
from .diagnosis_evidence import Finding, Observed, cards_of, finding, number, part
from .diagnosis_figures import held_back

LOW_POWER_RATIO = 0.30
SLOW_STAGE_FACTOR, SLOW_STAGE_MARGIN = 1.5, 0.20
LINK_RATIO = 0.75
"""One request keeps one card busy after the other: below this share of the time the links between them are slow."""
GOOD_RATIO = 0.75
"""What a well running decoder reaches of its bound at one request (the published runs: 0.74)."""
UNSUITED_RATIO = 0.50
NEAR_ROOFLINE_RATIO = 0.85


def slow_stage(seen: Observed) -> Finding | None:
    """One stage works much longer than the rest, more than its share of the weights explains."""
    busy = seen.stage_utilization(cards_of(seen.largest) or None)
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
    if any(gpu.get("stage") == slow and held_back(gpu) for gpu in seen.gpus):
        return None  # Its clocks say why.
    return finding(
        "GATE-SLOW-STAGE",
        f"{seen.stage_name(slow)} holds the others up: it is busy {100 * busy[slow]:.0f} % of the time, the rest "
        f"{100 * typical:.0f} % for the same work",
        f"look at the card of stage {slow}: clocks, throttling, PCIe link width, another process; then at the layer split",
        lost=1 - typical / fair[slow],
        stage=slow,
        uuids=[str(gpu["uuid"]) for gpu in seen.gpus if gpu.get("stage") == slow and gpu.get("uuid")],
        stage_utilization_ratio=busy,
        rest_median_ratio=typical,
        expected_share=share if reads is not None else None,
    )


def links(seen: Observed) -> Finding | None:
    """With one request in flight no card works for much of the time: what is handed on takes long between stages."""
    single = seen.point(1)
    busy = seen.stage_utilization(cards_of(single))
    ratio = seen.graph_ratio
    if busy is None or sum(busy) >= LINK_RATIO or (ratio is not None and ratio < 0.5):
        return None  # Launches of eager passes leave cards idle as well.
    waits, whole = number(part(single, "engine").get("e2e_ms")), number(part(single, "client").get("e2e_mean_ms"))
    if waits is not None and whole:
        inside = min(waits / whole, 1.0)
        if sum(busy) >= LINK_RATIO * inside:
            return None  # The engine had nothing to do while answers were on their way.
    idle = 1 - sum(busy)
    narrow = [gpu for gpu in seen.gpus if _narrow(gpu)]
    refused = sorted({(gpu.get("index"), other) for gpu in seen.gpus for other in gpu.get("p2p_refused") or ()})
    numbers = {"idle_ratio": idle, "stage_utilization_ratio": busy, "tpot_p50_ms": number(part(single, "tpot_ms").get("p50"))}
    if refused and not narrow:
        pairs = ", ".join(f"{one}–{other}" for one, other in refused if one < other)
        return finding(
            "GATE-P2P",
            f"the driver refuses direct reads between cards ({pairs}), and with one request in flight no card works for "
            f"{100 * idle:.0f} % of the time: what is handed on goes through the host",
            "IOMMU in passthrough (iommu=pt), ACS off on the switches above the cards, uvm_disable_hmm=1; then check with the "
            "peer-to-peer test of the driver that data arrives whole",
            lost=idle,
            refused=[list(pair) for pair in refused if pair[0] < pair[1]],
            **numbers,
        )
    named = f"; narrower than it could be: the link of {', '.join(card_name(gpu) for gpu in narrow)}" if narrow else ""
    return finding(
        "GATE-SLOW-HOP",
        f"handing on is slow: with one request in flight no card works for {100 * idle:.0f} % of the time{named}",
        "look at PCIe link width and speed, at what sits between the cards (socket, switch), NCCL_P2P_LEVEL, NCCL_PROTO",
        lost=idle,
        narrow_links={card_name(gpu): _pcie(gpu) for gpu in narrow} or None,
        **numbers,
    )


def unsuited(seen: Observed) -> Finding | None:
    """Cards work all the time, graphs run, clocks are free, and still a token takes much longer than memory needs."""
    single = seen.point(1)
    tpot, bound = number(part(single, "tpot_ms").get("p50")), number((single or {}).get("bound_tokens_per_s"))
    busy, ratio = seen.stage_utilization(cards_of(single)), seen.graph_ratio
    if tpot is None or not bound or (ratio is not None and ratio < 0.5) or (ratio is None and seen.graphs_resolved_off):
        return None
    reached = 1000 / tpot / bound
    if reached >= UNSUITED_RATIO or busy is None or sum(busy) < LINK_RATIO:
        return None
    if any(held_back(gpu) for gpu in seen.gpus):
        return None
    streaming = [number(gpu.get("memory_busy_ratio")) for gpu in cards_of(single)]
    return finding(
        "GATE-BACKEND",
        f"the kernels do not suit the card: one token takes {tpot:.1f} ms where reading the weights takes {1000 / bound:.1f} ms "
        f"({100 * reached:.0f} % of the bound), although graphs run and the cards work all the time",
        "compare attention_backend and moe_runner_backend with what this card is known to run well, one at a time; look for a "
        "format that is unpacked on the way (a KV cache type, a quantisation without kernels for this card)",
        lost=1 - min(reached / GOOD_RATIO, 1.0),
        tpot_p50_ms=tpot,
        bound_tpot_ms=1000 / bound,
        bound_ratio=reached,
        memory_busy_ratio=[value for value in streaming if value is not None] or None,
    )


def roofline(seen: Observed) -> Finding | None:
    """A point misses its limit although it is close to what memory allows."""
    best: tuple[float, Mapping[str, Any]] | None = None
    for point in seen.points:
        speed, bound = number(point.get("output_tokens_per_s")), number(point.get("bound_tokens_per_s"))
        missed = any(
            isinstance(limit, Mapping)
            and limit.get("metric") == "min_output_tokens_per_s"
            and limit.get("verdict") not in (None, "pass")
            for limit in point.get("limits") or ()
        )
        if missed and speed and bound and speed / bound >= NEAR_ROOFLINE_RATIO and (best is None or speed / bound > best[0]):
            best = speed / bound, point
    if best is None:
        return None
    ratio, point = best
    return finding(
        "GATE-ROOFLINE",
        f"nothing is left to gain at {point.get('concurrency')} in flight: {point['output_tokens_per_s']:.1f} tok/s is "
        f"{100 * ratio:.0f} % of what memory bandwidth allows ({point['bound_tokens_per_s']:.1f})",
        "a lower limit, smaller weights (another quantisation), or cards with more bandwidth; no setting will do it",
        lost=0.0,
        concurrency=point.get("concurrency"),
        tokens_per_s=number(point["output_tokens_per_s"]),
        bound_tokens_per_s=number(point["bound_tokens_per_s"]),
        bound_ratio=ratio,
    )


def power(seen: Observed) -> Finding | None:
    """A sign, not a cause: said beside the causes."""
    ratio, watts = seen.power_ratio, seen.mean_power_w
    limits = [number(part(gpu, "power_w").get("limit")) for gpu in seen.gpus]
    if ratio is None or watts is None or ratio >= LOW_POWER_RATIO:
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
        power_ratio=ratio,
        gpus=len(seen.gpus),
        power_w=[number(part(gpu, "power_w").get("mean")) for gpu in seen.gpus],
    )


def _pcie(gpu: Mapping[str, Any]) -> str:
    pcie = part(gpu, "pcie")
    return f"x{pcie.get('width')} of x{pcie.get('width_max')}"


def _narrow(gpu: Mapping[str, Any]) -> bool:
    width, most = number(part(gpu, "pcie").get("width")), number(part(gpu, "pcie").get("width_max"))
    return width is not None and most is not None and width < most
