# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Layer split over stages: every layer once, even, and the partition variable as SGLang takes it."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.stages import stage_layers
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(1, 64).flatmap(lambda pp: st.tuples(st.integers(pp, 512), st.just(pp))))
def test_every_layer_is_placed_once_and_stages_stay_even(case):
    num_layers, pp_size = case
    layers = stage_layers(num_layers, pp_size)
    assert (len(layers), sum(layers)) == (pp_size, num_layers)
    assert max(layers) - min(layers) <= 1
    assert list(layers) == sorted(layers)


@pytest.mark.parametrize("partition", ["7,7,7,8,8,8,8,8", [8, 8, 8, 8, 8, 7, 7, 7], None, ""])
def test_a_partition_that_fits_is_taken_r18(partition):
    layers = stage_layers(61, 8, partition)
    assert sum(layers) == 61
    if isinstance(partition, list):
        assert list(layers) == partition


@pytest.mark.parametrize(
    ("partition", "why"),
    [
        ("8,8,8,8,8,8,8,8", "sums to 64"),
        ("8,8,8,8,8,8,8", "7 entries"),
        ("61,0,0,0,0,0,0,0", "no layer"),
        ("7,7,7,8,8,8,8,x", "whole numbers"),
    ],
)
def test_a_partition_that_does_not_fit_is_refused_with_the_reason_r18(partition, why):
    with pytest.raises(InferopsError) as caught:
        stage_layers(61, 8, partition)
    assert why in caught.value.why
    assert caught.value.where == "SGLANG_PP_LAYER_PARTITION"
    assert "7,7,7,8,8,8,8,8" in caught.value.do


@pytest.mark.parametrize("pp_size", [0, -1, 62])
def test_more_stages_than_layers_are_refused(pp_size):
    with pytest.raises(InferopsError, match=str(pp_size)):
        stage_layers(61, pp_size)
