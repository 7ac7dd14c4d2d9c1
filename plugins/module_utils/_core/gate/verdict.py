# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From figures to a word: pass, fail or inconclusive, with limit, value, interval and sample count on one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from .bound import PointBound, promoted_points
from .load import PointLoad
from .load_words import load_key
from .metrics import cut_misses, good, latency, pooled
from .plan import GatePlan, Point
from .plan_limits import PERCENTILES, Limit
from .stats import MAX_BATCHES, at_each_look, design_effect, needed_samples, percentile, percentile_interval, share_interval
from .stream import Trace
from .throughput import throughput

PASS, FAIL, INCONCLUSIVE, OBSERVED = "pass", "fail", "inconclusive", "observed"
OBSERVED_WIDTH = 0.02
MIN_ROUNDS = 3
HOPELESS = 2.0
Interval: TypeAlias = "tuple[float, float] | None"


@dataclass(frozen=True)
class Judged:
    """One limit, judged."""

    metric: str
    limit: float
    value: float | None
    ci: Interval
    n: int
    verdict: str
    why: str | None = None
    foregone: bool = False
    """There is nothing to judge against: no more load can change the word."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "limit": round(self.limit, 6),
            "value": None if self.value is None else round(self.value, 4),
            "ci": None if self.ci is None else [round(self.ci[0], 4), round(self.ci[1], 4)],
            "n": self.n,
            "verdict": self.verdict,
            "why": self.why,
        }

    def text(self) -> str:
        """Return the line people read."""
        value = "absent" if self.value is None else f"{self.value:.4g}"
        ci = "no interval" if self.ci is None else f"{round(self.ci[0], 6):.4g} … {round(self.ci[1], 6):.4g}"
        why = "" if self.why is None else f"; {self.why}"
        return f"{self.metric}: limit {self.limit:g}, measured {value} ({ci}, n = {self.n}): {self.verdict}{why}"


@dataclass
class Validity:
    """What else is known about a point: reasons that refuse the server, and reasons that only refuse the figure."""

    wrong: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Yardsticks:
    """What figures are measured against: the plan, the bound of this point, the result that was promoted."""

    plan: GatePlan
    bound: PointBound | None = None
    promoted: Mapping[str, Any] | None = None


def judge_limits(point: Point, load: PointLoad, against: Yardsticks, *, most_samples: int | None = None) -> list[Judged]:
    """Judge every limit of one point on the load so far.

    ``most_samples`` bounds the work of a look in the middle of the load: of more latency samples, every n-th request counts.
    """
    window, confidence = load.window, at_each_look(against.plan.confidence)
    judged = []
    for limit in point.limits:
        if limit.latency is not None and limit.rank is not None:
            judged.append(_judge_latency(limit, _thinned(window, limit.latency, most_samples), confidence))
        elif limit.name == "min_goodput_ratio":
            judged.append(_judge_goodput(limit, point, load, confidence))
        else:
            judged.append(_judge_rate(limit, point, load, against))
    return judged


def decided(judged: Sequence[Judged], load: PointLoad, plan: GatePlan) -> bool:
    """Tell whether more load could not change the word: all limits clear, or an observed figure narrow enough."""
    if any(limit.verdict == FAIL for limit in judged):
        return True
    if any(limit.verdict != PASS and not limit.foregone for limit in judged):
        return False
    if judged and not any(limit.foregone for limit in judged):
        return True
    rate = throughput(load, plan.confidence)
    if rate.value is None or rate.ci is None:
        return False
    return rate.ci[1] - rate.value <= OBSERVED_WIDTH * rate.value


def point_verdict(judged: Sequence[Judged], validity: Validity) -> tuple[str, list[str]]:
    """Return (verdict, reasons) of one point. Wrong answers fail whatever the speed; doubt never passes."""
    lines = [limit.text() for limit in judged if limit.verdict != PASS]
    reasons = validity.wrong + lines + validity.doubtful
    if validity.wrong or any(limit.verdict == FAIL for limit in judged):
        # A figure that is too high for a reason must not fail, one that is too low with the same doubt may be noise.
        clear = bool(validity.wrong) or not validity.doubtful
        return (FAIL if clear else INCONCLUSIVE), reasons
    if validity.doubtful or any(limit.verdict == INCONCLUSIVE for limit in judged):
        return INCONCLUSIVE, reasons
    return (PASS if judged else OBSERVED), reasons


def run_verdict(verdicts: Sequence[str], *, planned: int, wrong: bool, doubtful: bool) -> str:
    """Return the word of the whole run. Nothing measured, or a point missing, never passes."""
    if wrong or FAIL in verdicts:
        return FAIL
    if doubtful or INCONCLUSIVE in verdicts or len(verdicts) < planned or not verdicts:
        return INCONCLUSIVE
    return PASS


def _judge_goodput(limit: Limit, point: Point, load: PointLoad, confidence: float) -> Judged:
    """Judge the share of planned requests that met every latency limit; what was ours to cut is not among them."""
    met = [float(good(trace, point.limits)) for trace in load.window]
    missed = cut_misses(load, point.limits)
    count = len(met) + missed
    effect = design_effect(_grouped([[value] for value in met]), 0.5)
    ci = share_interval(sum(met) / effect, count / effect, confidence)
    return at_least(limit, sum(met) / count if count else None, ci, count)


def _judge_rate(limit: Limit, point: Point, load: PointLoad, against: Yardsticks) -> Judged:
    """Judge output throughput, by itself or as a ratio to something that is known only to lie in an interval too."""
    rate = throughput(load, against.plan.confidence)
    ci = rate.ci if rate.rounds >= MIN_ROUNDS else None
    low = middle = high = 1.0
    unknown = None
    if limit.name == "min_roofline_ratio":
        unknown = "no bound: model, layout or bandwidth unknown" if against.bound is None else None
        low = middle = high = 1.0 if against.bound is None else against.bound.tokens_per_s
    elif limit.name == "min_ratio_to_promoted":
        old = _promoted_point(against, point)
        unknown = "no promoted figure at this load and these lengths" if old is None else None
        low, middle, high = old or (1.0, 1.0, 1.0)
    if unknown is not None:
        return Judged(limit.name, limit.value, None, None, rate.rounds, INCONCLUSIVE, unknown, foregone=True)
    ratio = None if rate.value is None else rate.value / middle
    return at_least(limit, ratio, None if ci is None else (ci[0] / high, ci[1] / low), rate.rounds)


def at_least(limit: Limit, value: float | None, ci: Interval, n: int) -> Judged:
    """Judge a minimum: pass and fail only when the whole interval is on one side."""
    if value is None:
        return Judged(limit.name, limit.value, None, None, n, INCONCLUSIVE, "nothing measured")
    if ci is None:
        # Too slow for three whole rounds: even twice as fast it would miss the limit, so more time cannot help.
        if limit.name != "min_goodput_ratio" and value * HOPELESS < limit.value:
            return Judged(limit.name, limit.value, value, None, n, FAIL, "below half of the limit")
        return Judged(limit.name, limit.value, value, None, n, INCONCLUSIVE, f"fewer than {MIN_ROUNDS} rounds of requests")
    if ci[0] >= limit.value:
        return Judged(limit.name, limit.value, value, ci, n, PASS)
    if ci[1] < limit.value:
        return Judged(limit.name, limit.value, value, ci, n, FAIL)
    return Judged(limit.name, limit.value, value, ci, n, INCONCLUSIVE, "the interval spans the limit")


def _judge_latency(limit: Limit, samples: Sequence[Sequence[float]], confidence: float) -> Judged:
    share = PERCENTILES[limit.rank or ""]
    ordered = pooled(samples)
    count, value = len(ordered), percentile(ordered, share)
    if value is None:
        why = f"{limit.rank} needs {needed_samples(share)} samples"
        return Judged(limit.name, limit.value, None, None, count, INCONCLUSIVE, why)
    ci = percentile_interval(ordered, share, confidence, effect=design_effect(_grouped(samples), value))
    if ci is not None and ci[1] <= limit.value:
        return Judged(limit.name, limit.value, value, ci, count, PASS)
    if ci is not None and ci[0] > limit.value:
        return Judged(limit.name, limit.value, value, ci, count, FAIL)
    return Judged(limit.name, limit.value, value, ci, count, INCONCLUSIVE, "the interval spans the limit")


def _thinned(window: Sequence[Trace], name: str, most: int | None) -> list[list[float]]:
    """Return the samples of a latency per request, of every n-th request where there would be more than ``most``."""
    per_request = max((len(trace.chunks) for trace in window[:8]), default=1) if name == "itl" else 1
    step = 1 if most is None else max(1, len(window) * per_request // most)
    return latency(name, window[::step])


def _grouped(samples: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return samples per request as at most 20 groups that follow each other in time."""
    size = max(1, -(-len(samples) // MAX_BATCHES))
    return [list(chain.from_iterable(samples[at : at + size])) for at in range(0, len(samples), size)]


def _promoted_point(against: Yardsticks, point: Point) -> tuple[float, float, float] | None:
    """Return (low, figure, high) of the promoted result at the same load and lengths."""
    if point.key not in promoted_points(against.promoted, against.plan):
        return None
    points = (against.promoted or {})["points"]
    old = next(old for old in points if load_key(old) == point.key and old.get("ci"))
    return old["ci"][0], old["output_tokens_per_s"], old["ci"][1]
