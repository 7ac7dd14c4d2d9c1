"""Command lines for the oracle: made from a release's own table and guards, the same ones every time; kept without loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recorded
from flag_values import legal, options_of
from generate import KINDS, each_flag, generate
from hypothesis import given
from hypothesis import strategies as st
from shared_rules import read_rules

SOURCE = """
class ServerArgs:
    def __post_init__(self):
        if self.pp_size > 1:
            if self.enable_mixed_chunk:
                raise ValueError("no")
            self.disable_overlap_schedule = True
        if self.attention_backend == "triton" or self.page_size in (1, 64):
            pass
        if envs.SGLANG_ONE.get() or os.environ.get("SGLANG_TWO") or get_bool_env_var("SGLANG_THREE"):
            declare_resolution(self, "x", page_size=1)
"""


def _action(flags, dest, **more):
    return {"flags": flags, "dest": dest, "action": "_StoreAction", "nargs": None, "choices": None, "type": None, **more}


TABLE = {
    "version": "1.0",
    "actions": [
        _action(["--model-path"], "model_path", type="str"),
        _action(["--config"], "config", type="str"),
        _action(["--pp-size"], "pp_size", type="int"),
        _action(["--page-size"], "page_size", type="int"),
        _action(["--attention-backend"], "attention_backend", choices=["triton", "fa3"], type="str"),
        _action(["--enable-mixed-chunk"], "enable_mixed_chunk", action="_StoreTrueAction", nargs=0),
        _action(["--disable-overlap-schedule"], "disable_overlap_schedule", action="_StoreTrueAction", nargs=0),
    ],
}


@pytest.fixture
def package(tmp_path) -> Path:
    (tmp_path / "srt").mkdir()
    (tmp_path / "srt" / "server_args.py").write_text(SOURCE)
    return tmp_path


def test_rules_are_what_guards_mention_together(package):
    rules = read_rules(package, options_of(TABLE))

    assert set(rules.pairs) == {
        ("disable_overlap_schedule", "pp_size"),
        ("enable_mixed_chunk", "pp_size"),
        ("attention_backend", "page_size"),
    }
    assert rules.values == {"attention_backend": {"triton"}, "page_size": {1, 64}, "pp_size": {1}}
    assert set(rules.environment) == {"SGLANG_ONE", "SGLANG_TWO", "SGLANG_THREE"}


def test_every_kind_is_made_and_the_same_seed_makes_the_same_cases(package):
    cases = generate("1.0", TABLE, package, seed=7, count=200)

    assert cases == generate("1.0", TABLE, package, seed=7, count=200)
    assert cases != generate("1.0", TABLE, package, seed=8, count=200)
    assert {case["id"].partition("-")[0] for case in cases} == {*KINDS, "without"}
    keys = [json.dumps([case["hardware"], case["argv"], case.get("env"), case.get("files")]) for case in cases]
    assert len(keys) == len(set(keys))
    names = {case["id"] for case in cases}
    assert all(case["twin"] in names for case in cases if "twin" in case)


def test_each_flag_is_asked_for_alone_once(package):
    cases = each_flag("1.0", TABLE, package, seed=7)

    asked = [word.partition("=")[0] for case in cases for word in case["argv"] if word.startswith("--")]
    strings = {string for one in options_of(TABLE).values() for string in one.strings}
    assert strings <= set(asked) and len(cases) == len(options_of(TABLE))


def test_a_release_without_config_files_gets_none(package):
    table = {**TABLE, "actions": [one for one in TABLE["actions"] if one["dest"] != "config"]}

    assert not [case for case in generate("1.0", table, package, seed=1, count=200) if case.get("files")]


@given(st.randoms(use_true_random=False))
def test_a_legal_use_of_a_flag_is_one_its_choices_allow(rng):
    words = legal(options_of(TABLE)["attention_backend"], {"triton", "gone"}, rng)

    assert words[-1].rpartition("=")[2] in ("triton", "fa3")


def test_what_two_cases_are_compared_by_is_kept_of_both_halves_whatever_their_names():
    cases = [{"id": "bare-1"}, {"id": "twin-2", "twin": "bare-1"}, {"id": "single-3"}]
    executed = {"outcome": "ok", "changed": {}, "effective": {"page_size": 1, "dtype": "auto"}}
    halves = recorded.halves(cases)

    kept = {case["id"]: recorded.trim({**case, **executed}, ["page_size"], half=case["id"] in halves) for case in cases}

    assert {name for name, case in kept.items() if case.get("effective") == {"page_size": 1}} == {"bare-1", "twin-2"}
    assert "effective" not in kept["single-3"]


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
_CASES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "id": st.text(max_size=4),
                "outcome": st.just("ok"),
                "changed": st.dictionaries(st.sampled_from("abcdef"), st.lists(_VALUES, min_size=2, max_size=2)),
            }
        ),
        st.just({"id": "x", "outcome": "fatal", "message_contains": "no", "changed": {}}),
    ),
    max_size=6,
)


@given(_CASES)
def test_the_compact_form_loses_nothing(cases):
    assert recorded.unpack(json.loads(recorded.text(cases, {}))) == cases
