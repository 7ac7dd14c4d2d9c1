# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A profile is validated as a whole, and each argument that comes out of it has one owner."""

from __future__ import annotations

import doctest

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core import profile as module
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.profile import launch_args, launch_argv, validate_profile
from hypothesis import given
from hypothesis import strategies as st

MINIMAL = {"model": {"served_name": "m"}}
FIELDS = st.from_regex(r"[a-z]{1,3}_[a-z]{1,6}", fullmatch=True)
VALUES = st.none() | st.booleans() | st.integers() | st.text()


def test_examples_in_docstrings():
    assert doctest.testmod(module).failed == 0


def test_every_section_is_there_afterwards_and_validating_twice_is_once():
    once = validate_profile(MINIMAL)
    assert set(once) == {*module.WORDS, *module.SECTIONS}
    assert validate_profile(once) == once


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "a profile is a mapping, not list"),
        ({}, "no model.served_name"),
        ({**MINIMAL, "hardwear": {}}, "did you mean 'hardware'"),
        ({**MINIMAL, "hardware": {"gpu_cuont": 8}}, "did you mean 'gpu_count'"),
        ({**MINIMAL, "args": ["--pp-size"]}, "args is a mapping, not list"),
        ({**MINIMAL, "topology": {"pp_size": 8}, "args": {"pp_size": 8}}, "pp_size is set twice"),
        ({**MINIMAL, "topology": {"pp_size": 0}}, "topology.pp_size is a number above 0"),
        ({**MINIMAL, "hardware": {"gpu_count": True}}, "hardware.gpu_count is a number above 0"),
    ],
)
def test_what_is_wrong_is_named(data, says):
    with pytest.raises(InferopsError, match=says):
        validate_profile(data, "here")


@given(st.dictionaries(FIELDS, VALUES), st.dictionaries(FIELDS, VALUES))
def test_an_override_wins_and_null_takes_away(args, overrides):
    merged = launch_args({"args": args}, overrides, {})
    assert merged == {key: value for key, value in (args | overrides).items() if value is not None}


@pytest.mark.parametrize("field", module.OWNERS)
def test_an_owned_field_is_refused_with_its_owner(field):
    for profile, overrides in (({"args": {field: 1}}, {}), ({}, {field: 1})):
        with pytest.raises(InferopsError, match="does not belong") as caught:
            launch_args(profile, overrides, {})
        assert caught.value.do == f"set {module.OWNERS[field]}"


def test_a_flag_is_not_a_field():
    with pytest.raises(InferopsError, match="keyed by SGLang's field names") as caught:
        launch_args({}, {"--pp-size": 8}, {})
    assert "pp_size" in caught.value.do


@pytest.mark.parametrize(
    "word", ["--api-key", "--api-key=hunter2", "--api-k", "--admin-api-key", "--host", "--port=1", "--model", "--config"]
)
def test_a_raw_word_that_sets_what_the_role_owns_is_refused(word):
    with pytest.raises(InferopsError, match="does not belong into sglang_service_argv") as caught:
        launch_argv(["--pp-size", "8", word], {})
    assert caught.value.where == "sglang_service_argv[2]"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "words", [["--pp-size", "8"], ["--disable-cuda-graph"], ["--tp=1"], ["--model-loader-extra-config", "{}"], ["-1"], ["--"]]
)
def test_other_raw_words_stay_as_they_are(words):
    assert launch_argv(words, {"port": 30000, "revision": None}) == [*words, "--port", "30000"]
