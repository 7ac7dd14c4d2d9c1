# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Readings folded together keep sums, extremes and growth, in bounded room."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.folded import Folded
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=200), st.integers(2, 9))
def test_folding_loses_no_reading_and_invents_none(values, most):
    folded = Folded(most)
    for turn, value in enumerate(values):
        folded.add(turn, {"x": value})
    assert len(folded._stretches) <= most
    seen, known = folded.over([(0, len(values))]), [value for value in values if value is not None]
    assert seen.readings == len(values)
    if not known:
        assert (seen.mean("x"), seen.most("x"), seen.gain("x")) == (None, None, None)
        return
    stat = seen.stats["x"]
    assert (stat.count, stat.least, stat.most) == (len(known), min(known), max(known))
    assert stat.total == pytest.approx(sum(known), abs=1e-3)
    assert seen.gain("x") == (None if len(known) == 1 else max(known) - min(known))


def test_windows_are_told_apart_and_a_counter_grows_within_them():
    folded = Folded()
    for second in range(100):
        folded.add(second * 10**9, {"tokens": 7.0 * second})
    seen = folded.over([(10 * 10**9, 30 * 10**9)])
    assert (seen.gain("tokens"), seen.seconds, seen.readings) == (140, 20, 21)
    assert folded.over([]).readings == 0


@given(st.integers(2, 400), st.integers(1, 40))
def test_what_a_counter_took_right_before_a_window_is_none_of_its_growth(most, before):
    """The last requests of a warm-up end as the window opens; their times beside those of the window accused a network."""
    folded = Folded(most)
    for reading in range(before + 60):
        folded.add(reading * 10, {"ended": 0.0 if reading < before else 16.0})
    assert folded.over([(before * 10, 10**6)]).gain("ended") in (0.0, None) or folded._each > 30
