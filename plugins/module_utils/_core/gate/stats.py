# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Intervals on the standard library alone: Student's t, batch means, order statistics, shares."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

MAX_BATCHES = 20
# Before a series has shown how it follows itself it is taken to do so as if six of its values had said 0.5; chosen, with the
# spending below, by the simulation in benchmarks/gate/decisions.py.
PRIOR_CORRELATION, PRIOR_WEIGHT = 0.5, 6
MOST_CORRELATION = 0.9
SPENT_PER_LOOK = 0.5


def at_each_look(confidence: float) -> float:
    """Return the confidence of one look, where the looks at a growing series together shall keep ``confidence``."""
    return 1 - SPENT_PER_LOOK * (1 - confidence)


@functools.lru_cache(maxsize=512)
def student_t_quantile(probability: float, dof: int) -> float:
    """Return the quantile of Student's t distribution with ``dof`` >= 1 degrees of freedom.

    >>> round(student_t_quantile(0.975, 2), 3), round(student_t_quantile(0.975, 30), 3)
    (4.303, 2.042)
    """
    if probability < 0.5:
        return -student_t_quantile(1 - probability, dof)
    low, high = 0.0, 1.0
    while _student_t_cdf(high, dof) < probability:
        high *= 2
    for dummy in range(80):
        middle = (low + high) / 2
        if _student_t_cdf(middle, dof) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def half_width(values: Sequence[float], confidence: float) -> float | None:
    """Return the half width of the interval for the mean of a time-ordered series; None below three values.

    Batch means: neighbours are merged until at most 20 batches remain, then Student's t on the batch means. Where the
    batches follow each other (lag-1 autocorrelation r > 0), the variance grows by (1 + r) / (1 - r), r <= 0.9; r is
    corrected for its bias in short series and drawn towards 0.5 while the batches are few.
    """
    if len(values) < 3:
        return None
    batches = batched(values, MAX_BATCHES)
    count, spread = len(batches), stdev(batches)
    if spread == 0:
        return 0.0
    seen = _lag_one(batches)
    unbiased = seen + (1 + 3 * max(seen, 0.0)) / count
    drawn = (count * unbiased + PRIOR_WEIGHT * PRIOR_CORRELATION) / (count + PRIOR_WEIGHT)
    correlation = min(max(drawn, 0.0), MOST_CORRELATION)
    inflation = (1 + correlation) / (1 - correlation)
    return student_t_quantile(0.5 + confidence / 2, count - 1) * spread * math.sqrt(inflation / count)


def batched(values: Sequence[float], most: int) -> list[float]:
    """Return the means of neighbours, merged two by two until at most ``most`` are left.

    >>> batched([1.0, 3.0, 5.0, 7.0], 2)
    [2.0, 6.0]
    """
    batches = list(values)
    while len(batches) > most:
        batches = [fmean(batches[i : i + 2]) for i in range(0, len(batches) - 1, 2)]
    return batches


def design_effect(groups: Sequence[Sequence[float]], threshold: float) -> float:
    """Return how many times fewer independent samples there are than samples: at least 1.

    The groups follow each other in time. The share of samples above the threshold varies from group to group as it would
    for independent samples, or more; that more is returned.
    """
    shares = [(sum(value > threshold for value in group), len(group)) for group in groups if group]
    total = sum(size for dummy, size in shares)
    above = sum(hits for hits, dummy in shares)
    if len(shares) < 3 or above in (0, total):
        return 1.0
    share = above / total
    between = sum((hits - share * size) ** 2 for hits, size in shares) * len(shares) / (len(shares) - 1)
    return max(between / (total * share * (1 - share)), 1.0)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return a percentile (linear between ranks) of an ascending series; None when 1/(1 - share) samples are not there.

    >>> percentile([1.0, 2.0, 3.0], 0.5), percentile([1.0, 2.0, 3.0], 0.99)
    (2.0, None)
    """
    if len(ordered) < needed_samples(share):
        return None
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def needed_samples(share: float) -> int:
    """Return how many samples a percentile needs before we quote it.

    >>> needed_samples(0.5), needed_samples(0.9), needed_samples(0.99)
    (2, 10, 100)
    """
    return round(1 / (1 - share))


def percentile_interval(
    ordered: Sequence[float], share: float, confidence: float, *, effect: float = 1.0
) -> tuple[float, float] | None:
    """Return an order-statistic interval for a percentile, free of any distribution; None when there are too few samples.

    Ranks n·p ± z·sqrt(n·p·(1-p)), clipped to the samples: for p99 below some 300 samples the upper end is the largest
    value seen, so a limit is met only when every sample meets it. ``effect`` is the design effect of the samples.
    """
    count = len(ordered)
    if count < needed_samples(share):
        return None
    reach = _normal(confidence) * math.sqrt(count * share * (1 - share) * effect)
    low = max(math.floor(count * share - reach) - 1, 0)
    high = min(math.ceil(count * share + reach), count - 1)
    return ordered[low], ordered[high]


def share_interval(hits: float, count: float, confidence: float) -> tuple[float, float] | None:
    """Return Wilson's interval for a share of ``hits`` among ``count`` independent ones; None without any.

    >>> share_interval(0, 0, 0.95) is None
    True
    """
    if count == 0:
        return None
    z = _normal(confidence)
    share = hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _lag_one(values: Sequence[float]) -> float:
    centre = fmean(values)
    deviations = [value - centre for value in values]
    power = sum(value * value for value in deviations)
    return sum(a * b for a, b in itertools.pairwise(deviations)) / power


def _student_t_cdf(value: float, dof: int) -> float:
    tail = _incomplete_beta(dof / 2, 0.5, dof / (dof + value * value)) / 2
    return 1 - tail


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * result / a
