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


@pytest.mark.parametrize(
    ("torch", "platform"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu"),
        ("cuda = None\nhip = None\n", "cpu"),
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", "cuda"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.4'\n", "cuda"),
        ("__version__ = '2.13.0'\n", "cuda"),
        ("", "cuda"),
        (None, "cuda"),
    ],
)
def test_cards_are_none_for_a_torch_that_was_built_for_processors(torch, platform):
    """The real engine on a host with cards: capacity was read off a card that SGLang did not see."""
    assert Facts(platform="cuda", sm=120).through(torch).platform == platform


def test_a_platform_that_is_not_told_stays_unknown():
    assert Facts().through("cuda = None\nhip = None\n").platform is None
