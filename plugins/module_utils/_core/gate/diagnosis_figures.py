# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules that say what a figure is worth: cached prompts, held-back clocks, above the bound, far below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .card_words import CLOCK_CAP, card_name, held_back_where
from .diagnosis_evidence import Finding, Observed, finding, number

CACHED_RATIO = 0.01
HEADROOM_RATIO = 0.50
ABOVE_BOUND_RATIO = 1.05
NEAR_LIMIT_RATIO = 0.90
STRAY_RATIO = 0.05
"""Share of readings; the gate itself calls a run doubtful above it."""
LOW_CLOCK_RATIO, AT_WORK_RATIO = 0.50, 0.20
"""A card that works and runs at less than half of its highest clock has a cap that NVML gives no reason for."""
# NVML clock-event reasons that are no trouble.
HARMLESS = {"gpu_idle", "idle", "none", "applications_clocks_setting", "sync_boost", "display_clock_setting"}
POWER_CAPS = {"sw_power_cap", "power_cap"}
CAP_ADVICE = {
    "power": "raise the power limit if the site allows it, or accept the figure as this limit's",
    CLOCK_CAP: "look for clocks that somebody locked (nvidia-smi -q -d CLOCK shows them, nvidia-smi -rgc takes the lock off)",
}
HEAT_ADVICE = "see to cooling and power supply of these cards; a figure taken while throttled does not judge the configuration"


def cached(seen: Observed) -> Finding | None:
    high = {
        point.get("concurrency"): share
        for point in seen.points
        if (share := number(point.get("cached_tokens_ratio"))) is not None
        and share > (number(point.get("cached_tokens_limit_ratio")) or CACHED_RATIO)
    }
    if not high:
        return None
    worst = max(high.values())
    return finding(
        "GATE-CACHED",
        f"up to {100 * worst:.1f} % of the prompt tokens came from the prefix cache: the run looks faster than fresh prompts are",
        "use unique prompts and flush the cache before each point; a run with more than 1 % cached is not valid",
        cached_tokens_ratio=worst,
        concurrencies=sorted(high, key=str),
    )


def above_bound(seen: Observed) -> Finding | None:
    for point in seen.points:
        speed, bound = number(point.get("output_tokens_per_s")), number(point.get("bound_tokens_per_s"))
        if speed is not None and bound and speed > ABOVE_BOUND_RATIO * bound:
            return finding(
                "GATE-ABOVE-BOUND",
                f"{speed:.1f} tok/s at {point.get('concurrency')} is above what memory bandwidth allows ({bound:.1f}): "
                "the count is in doubt",
                "compare tokens with usage; look for cached or repeated prompts, speculative decoding, a wrong bandwidth",
                concurrency=point.get("concurrency"),
                tokens_per_s=speed,
                bound_tokens_per_s=bound,
            )
    return None


def throttle(seen: Observed) -> Finding | None:
    """Clocks were held back, in more than stray readings; a power cap counts where a card really draws near its limit."""
    held = {place: reasons for place, gpu in enumerate(seen.gpus) if (reasons := held_back(gpu))}
    if not held:
        return None
    why = {"power" if reason.lower() in POWER_CAPS else reason for named in held.values() for reason in named}
    advice = [CAP_ADVICE[each] for each in CAP_ADVICE if each in why]
    if why - set(CAP_ADVICE):
        advice.insert(0, HEAT_ADVICE)
    known = [share for place in held if (share := _clock_share(seen.gpus[place])) is not None]
    return finding(
        "GATE-THROTTLE",
        f"clocks were held back during the run: {'; '.join(held_back_where(held, seen.gpus))}",
        "; ".join(advice),
        lost=1 - min(known) if known else 0.5,
        cards={card_name(seen.gpus[place]): reasons for place, reasons in held.items()},
        clock_ratio=min(known) if known else None,
    )


def held_back(gpu: Mapping[str, Any]) -> list[str]:
    """Return why the clocks of a card were lower than they could be, nothing for idle clocks and stray readings."""
    power = gpu.get("power_w") or {}
    drawn, limit, held = number(power.get("mean")), number(power.get("limit")), number(gpu.get("throttled_ratio"))
    capped = drawn is not None and limit is not None and drawn >= NEAR_LIMIT_RATIO * limit
    stray = held is not None and held <= STRAY_RATIO
    named = [str(reason) for reason in gpu.get("throttle") or () if str(reason).lower() not in HARMLESS]
    found = [reason for reason in named if (capped if reason.lower() in POWER_CAPS else not stray)]
    share, busy = _clock_share(gpu), number(gpu.get("utilization_ratio"))
    if not found and share is not None and share < LOW_CLOCK_RATIO and busy is not None and busy >= AT_WORK_RATIO:
        found = [CLOCK_CAP]
    return sorted(found)


def _clock_share(gpu: Mapping[str, Any]) -> float | None:
    clock = gpu.get("sm_clock_mhz") or {}
    mean, most = number(clock.get("mean")), number(clock.get("max"))
    return None if mean is None or not most else mean / most


def headroom(seen: Observed) -> Finding | None:
    """The figure passes its limit, and the limit is far below what the cards can give."""
    best: tuple[float, Mapping[str, Any]] | None = None
    for point in seen.points:
        speed, bound = number(point.get("output_tokens_per_s")), number(point.get("bound_tokens_per_s"))
        if point.get("verdict") == "pass" and point.get("limits") and speed and bound and speed / bound < HEADROOM_RATIO:
            ratio = speed / bound
            if best is None or ratio < best[0]:
                best = (ratio, point)
    if best is None:
        return None
    ratio, point = best
    return finding(
        "GATE-HEADROOM",
        f"{point['output_tokens_per_s']:.1f} tok/s at {point.get('concurrency')} passes its limit but is {100 * ratio:.0f} % "
        f"of the bound ({point['bound_tokens_per_s']:.0f} tok/s): {1 / ratio:.1f} × is left on the table",
        "do not take the limit for the goal: tune fill and topology, then raise the limit to what was reached",
        concurrency=point.get("concurrency"),
        tokens_per_s=number(point["output_tokens_per_s"]),
        bound_tokens_per_s=number(point["bound_tokens_per_s"]),
        bound_ratio=ratio,
    )
