"""Facts: absent is unknown, a misspelled one is an error."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import Facts
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError


def test_absent_and_null_are_unknown():
    assert Facts.from_dict({"sm": None}) == Facts()
    assert Facts.from_dict({"gpu_count": 0}).gpu_count == 0


@pytest.mark.parametrize(
    "raw",
    [
        {"gpus": 8},
        {"gpu_cout": 8},
        {"sm": "12.0"},
        {"sm": 12.0},
        {"sm": 12},
        {"sm": True},
        {"gpu_count": -1},
        {"platform": "gpu"},
        {"packages": []},
    ],
)
def test_what_is_not_a_fact_is_refused(raw):
    with pytest.raises(InferopsError) as caught:
        Facts.from_dict(raw)
    assert next(iter(raw)) in str(caught.value)
    assert caught.value.do


def test_the_nearest_name_is_given():
    with pytest.raises(InferopsError) as caught:
        Facts.from_dict({"gpu_cout": 8})
    assert "gpu_count" in caught.value.do
