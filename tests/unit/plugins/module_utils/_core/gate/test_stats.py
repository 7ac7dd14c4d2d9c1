# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Intervals: known quantiles, coverage on series that follow each other, percentiles that stay absent."""

from __future__ import annotations

import random

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import stats
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("probability", "dof", "expected"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.95, 5, 2.01505),
        (0.995, 10, 3.16927),
        (0.975, 200, 1.97190),
        (0.025, 2, -4.30265),
    ],
)
def test_student_t_quantile_agrees_with_tables(probability, dof, expected):
    assert stats.student_t_quantile(probability, dof) == pytest.approx(expected, rel=1e-4)


def test_interval_covers_the_mean_of_a_series_that_follows_itself():
    source, hits, trials = random.Random(0), 0, 300
    for _ in range(trials):
        state, values = 0.0, []
        for _ in range(40):
            state = 0.6 * state + source.gauss(0, 1)
            values.append(10 + state)
        reach = stats.half_width(values, 0.95)
        hits += abs(sum(values) / len(values) - 10) <= reach
    assert hits / trials > 0.88


def test_no_interval_below_three_values():
    assert stats.half_width([1.0, 2.0], 0.95) is None
    assert stats.half_width([1.0, 1.0, 1.0], 0.95) == 0


@given(st.lists(st.floats(0, 1e6), max_size=400).map(sorted), st.sampled_from([0.5, 0.9, 0.99]))
def test_percentile_lies_in_its_interval_or_both_are_absent(ordered, share):
    value, ci = stats.percentile(ordered, share), stats.percentile_interval(ordered, share, 0.95)
    assert (value is None) == (ci is None) == (len(ordered) < stats.needed_samples(share))
    if value is not None:
        assert ci[0] <= value <= ci[1]


@given(st.integers(0, 50), st.integers(0, 50))
def test_share_interval_holds_the_share(hits, misses):
    ci = stats.share_interval(hits, hits + misses, 0.95)
    if hits + misses == 0:
        assert ci is None
    else:
        assert 0 <= ci[0] <= hits / (hits + misses) + 1e-9
        assert hits / (hits + misses) - 1e-9 <= ci[1] <= 1
