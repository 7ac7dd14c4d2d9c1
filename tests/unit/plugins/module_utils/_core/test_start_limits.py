# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start and restart limits follow from the size of the model (R60, R61)."""

from __future__ import annotations

import doctest

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core import start_limits as module
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.start_limits import start_limits
from hypothesis import given
from hypothesis import strategies as st

SIZES = st.integers(0, 10**13)
RATES = st.floats(1, 10**5)
BASES = st.integers(1, 10**4)


def test_examples_in_docstrings():
    assert doctest.testmod(module).failed == 0


@given(SIZES, RATES, BASES)
def test_r60_the_start_limit_covers_loading(size, rate, base):
    assert start_limits(size, rate, base)["start_s"] >= base + size / 2**20 / rate


@given(SIZES, RATES, BASES)
def test_r61_the_restart_limit_can_trigger(size, rate, base):
    limits = start_limits(size, rate, base)
    longest = limits["limit_burst"] * (limits["start_s"] + limits["restart_s"])
    assert limits["limit_interval_s"] > longest


@pytest.mark.parametrize("case", [(-1, 200, 900), (1, 0, 900), (1, 200, 0)])
def test_nonsense_is_refused(case):
    with pytest.raises(InferopsError):
        start_limits(*case)
