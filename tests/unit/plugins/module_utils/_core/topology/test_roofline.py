# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The bound against published arithmetic, and laws no measurement may break."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.model import ModelShape
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.roofline import (
    bound,
    distinct_experts,
    fill_tokens_per_s,
    micro_batch_sizes,
    stage_read_bytes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

WORKSTATION_GB_S, SERVER_GB_S = 1792, 1600


@pytest.fixture(scope="module")
def kimi(fixtures):
    return ModelShape.from_config(json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8")))


def fastest(shape, concurrency, **changes):
    given_ = {"tp_size": 1, "pp_size": 8, "bandwidth_gb_s": WORKSTATION_GB_S} | changes
    found = bound(shape, concurrency=concurrency, **given_)
    return None if found is None else found.best.tokens_per_s


def test_one_token_reads_33_gb(kimi):
    reads = stage_read_bytes(kimi, tp_size=1, pp_size=8, tokens=1)
    assert sum(reads) / 1e9 == pytest.approx(33.0, abs=0.05)
    assert len(reads) == 8 and max(reads) == reads[-1], "the last stage also reads the head"


@pytest.mark.parametrize(("bandwidth", "tokens_per_s"), [(WORKSTATION_GB_S, 54), (SERVER_GB_S, 48), (1710, 52)])
def test_one_stream_is_bound_by_one_card(kimi, bandwidth, tokens_per_s):
    assert fastest(kimi, 1, bandwidth_gb_s=bandwidth) == pytest.approx(tokens_per_s, abs=0.6)


@pytest.mark.parametrize(("sizes", "tokens_per_s"), [((16,), 155), ((1,) * 16, 434), ((2,) * 8, 642)])
def test_sixteen_requests_by_filling(kimi, sizes, tokens_per_s):
    stages = [stage_read_bytes(kimi, tp_size=1, pp_size=8, tokens=count) for count in range(17)]
    assert fill_tokens_per_s(stages, sizes, WORKSTATION_GB_S, even=True) == pytest.approx(tokens_per_s, abs=1)


def test_the_bound_is_the_best_filling(kimi):
    filling = bound(kimi, tp_size=1, pp_size=8, concurrency=16, bandwidth_gb_s=WORKSTATION_GB_S).best
    assert (filling.requests, filling.micro_batches) == (16, 8)
    assert filling.tokens_per_s == pytest.approx(642, abs=1)


def test_a_real_split_is_slower_than_even_stages_and_a_lighter_last_stage_is_faster(kimi):
    even = fastest(kimi, 16)
    default = fastest(kimi, 16, partition=(7, 7, 7, 8, 8, 8, 8, 8))
    lighter = fastest(kimi, 16, partition=(8, 8, 8, 8, 8, 7, 7, 7))
    assert default <= lighter < even
    eight_by_two = [
        fill_tokens_per_s(
            [stage_read_bytes(kimi, tp_size=1, pp_size=8, tokens=count, partition=partition) for count in range(3)],
            (2,) * 8,
            WORKSTATION_GB_S,
            even=False,
        )
        for partition in ("7,7,7,8,8,8,8,8", "8,8,8,8,8,7,7,7")
    ]
    assert eight_by_two[0] < eight_by_two[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 8]), st.sampled_from([0, 4096]))
def test_more_requests_never_lower_the_bound_and_context_never_raises_it(kimi, concurrency, pp_size, tp_size, context):
    low = fastest(kimi, concurrency, pp_size=pp_size, tp_size=tp_size, context_tokens=context)
    assert low <= fastest(kimi, concurrency + 1, pp_size=pp_size, tp_size=tp_size, context_tokens=context) + 1e-9
    assert low <= fastest(kimi, concurrency, pp_size=pp_size, tp_size=tp_size, context_tokens=0) + 1e-9
    assert low == pytest.approx(
        fastest(kimi, concurrency, pp_size=pp_size, tp_size=tp_size, context_tokens=context, bandwidth_gb_s=2 * WORKSTATION_GB_S)
        / 2
    )
    total = fastest(kimi, concurrency, pp_size=1, tp_size=1) * pp_size * tp_size
    assert low <= total * 1.0001, "no split reads less than its share"


@given(st.integers(1, 512), st.integers(1, 64), st.integers(1, 256))
def test_distinct_experts_stay_between_one_token_and_all(experts, active, tokens):
    active = min(active, experts)
    touched = distinct_experts(experts, active, tokens)
    assert active - 1e-6 <= touched <= min(experts, active * tokens) + 1e-6


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_micro_batches_hold_every_request_once(case):
    requests, count = case
    sizes = micro_batch_sizes(requests, count)
    assert (sum(sizes), len(sizes)) == (requests, count)
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1


@pytest.mark.parametrize(
    "changes", [{"bandwidth_gb_s": None}, {"bandwidth_gb_s": 0}, {"pp_size": 62}, {"concurrency": 0}, {"kv_cache_dtype": "?"}]
)
def test_what_is_not_known_gives_no_bound(kimi, changes):
    arguments = {"tp_size": 1, "pp_size": 8, "concurrency": 1, "bandwidth_gb_s": 1600} | changes
    assert bound(kimi, **arguments) is None


def test_an_unknown_model_gives_no_bound():
    assert fastest(ModelShape.from_config({}), 1) is None
