# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How sentences name cards and what held their clocks back: a few by stage and short UUID, many by their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CLOCK_CAP = "clock_cap"
"""Ours: a card that works far below its highest clock, and NVML gives no reason."""
# NVML clock-event reasons, as they stand after "clocks were held back".
HELD_BACK_BY = {
    "sw_power_cap": "by the power limit",
    "power_cap": "by the power limit",
    "hw_slowdown": "by a hardware slowdown",
    "sw_thermal_slowdown": "by heat",
    "hw_thermal_slowdown": "by heat",
    "hw_power_brake": "by the power brake",
    CLOCK_CAP: "to less than half of the highest clock for no reason that NVML gives",
}


def held_back_by(reasons: Iterable[str]) -> str:
    """Return reasons in words, each once.

    >>> held_back_by(["hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown"])
    'by a hardware slowdown and by heat'
    """
    return " and ".join(dict.fromkeys(HELD_BACK_BY.get(reason, f"by {reason}") for reason in reasons))


def held_back_where(reasons: Mapping[int, Sequence[str]], gpus: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return, for each thing that held clocks back, a phrase with the cards, and these cards as places in ``gpus``.

    >>> gpus = [{"uuid": f"GPU-{place}7a1f000-1", "index": place, "stage": place} for place in range(4)]
    >>> list(held_back_where({place: ["sw_power_cap"] for place in range(4)}, gpus))
    ['by the power limit on all 4 cards']
    >>> list(held_back_where({1: ["sw_thermal_slowdown"], 2: ["hw_thermal_slowdown"], 3: ["sw_power_cap"]}, gpus))
    ['by heat on 2 of 4 cards (stages 1, 2)', 'by the power limit on card 3 (GPU-37a1f000, stage 3)']
    """
    groups: dict[str, list[int]] = {}
    for place, named in reasons.items():
        groups.setdefault(held_back_by(named), []).append(place)
    return {f"{words} on {_together(places, gpus)}": places for words, places in groups.items()}


def card_name(gpu: Mapping[str, Any]) -> str:
    """A card as people find it again: number, UUID, stage where they are known."""
    return _name(gpu, str(gpu["uuid"]) if gpu.get("uuid") else "")


def short_ids(ids: list[str]) -> dict[str, str]:
    """Return UUIDs as short as they stay distinct: their first block, else their end.

    >>> short_ids(["GPU-51a70000-1", "GPU-8c2b1111-1"])["GPU-51a70000-1"]
    'GPU-51a70000'
    >>> short_ids(["GPU-51a70000-0000-000000000001", "GPU-51a70000-0000-000000000002"])["GPU-51a70000-0000-000000000002"]
    'GPU-…0002'
    """
    heads = {each: "-".join(each.split("-")[:2]) for each in ids}
    if len(set(heads.values())) == len(set(ids)):
        return heads
    for length in (4, 8, 12):
        ends = {each: f"GPU-…{each[-length:]}" for each in ids}
        if len(set(ends.values())) == len(set(ids)):
            return ends
    return {each: each for each in ids}


def ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers, neighbours together.

    >>> ranges([5, 0, 1, 2, 7, 6]), ranges([3, 4])
    ('0–2, 5–7', '3, 4')
    """
    runs: list[list[int]] = []
    for each in sorted(set(numbers)):
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _together(places: Sequence[int], gpus: Sequence[Mapping[str, Any]]) -> str:
    if len(places) == 1:
        gpu = gpus[places[0]]
        short = short_ids([str(each["uuid"]) for each in gpus if each.get("uuid")])
        return _name(gpu, short.get(str(gpu.get("uuid")), ""))
    if len(places) == len(gpus):
        return f"all {len(gpus)} cards"
    many = f"{len(places)} of {len(gpus)} cards"
    stages = [gpu.get("stage") for gpu in gpus]
    kind = "stage" if len(set(stages)) == len(gpus) else "index"
    found = [number for place in places if isinstance(number := gpus[place].get(kind), int)]
    return f"{many} ({'stages' if kind == 'stage' else 'cards'} {ranges(found)})" if len(found) == len(places) else many


def _name(gpu: Mapping[str, Any], identity: str) -> str:
    known = [identity] if identity else []
    if isinstance(gpu.get("stage"), int):
        known.append(f"stage {gpu['stage']}")
    return f"card {gpu.get('index')}" + (f" ({', '.join(known)})" if known else "")
