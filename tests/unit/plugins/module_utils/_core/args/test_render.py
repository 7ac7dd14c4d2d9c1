"""Rendering a mapping to argv: parsing gives it back, and what argv cannot carry is refused."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.render import render_argv
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

VERSIONS = ("0.5.12", "0.5.23")
_TABLES = {}


def _table(wheel, version):
    if version not in _TABLES:
        _TABLES[version] = read_flags(open_source(wheel(version)))
    return _TABLES[version]


@pytest.fixture(scope="module", params=VERSIONS)
def table(request, wheel):
    return _table(wheel, request.param)


def _value(flag):
    if flag.action in ("store_true", "deprecated_true"):
        return st.just(True)
    if flag.action == "boolean_optional":
        return st.booleans()
    kinds = {"int": st.integers(-(10**9), 10**9), "float": st.floats(-1e6, 1e6).filter(lambda x: "e" not in repr(x))}
    one = kinds.get(flag.type, st.text(max_size=12))
    if isinstance(flag.choices, tuple):
        one = st.sampled_from(flag.choices)
    if flag.nargs in ("+", "*"):
        return st.lists(one.filter(lambda item: not str(item).startswith("-")), min_size=1, max_size=4)
    return one


@pytest.mark.wheel
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("version", VERSIONS)
def test_parsing_what_was_rendered_gives_it_back(wheel, version, data):
    table = _table(wheel, version)
    usable = [
        flag
        for flag in table.flags
        if flag.type in ("int", "float", "str", None)
        and flag.action in ("store", "store_true", "boolean_optional")
        and table.flag_for(table.field_of(flag)) is flag
        and table.field_of(flag) in table.fields
        and flag.nargs != "?"
    ]
    chosen = data.draw(st.lists(st.sampled_from(usable), max_size=8, unique_by=lambda flag: flag.dest))
    wanted = {"model_path": "m"} | {table.field_of(flag): data.draw(_value(flag)) for flag in chosen}
    parsed = parse(table, render_argv(wanted, table))
    assert {name: parsed.values[name] for name in wanted} == wanted
    assert set(parsed.explicit) == set(wanted)
    rest = {name: value for name, value in parsed.values.items() if name not in wanted}
    assert {name: value for name, value in rest.items() if value != table.default_of(name)} == {}


@pytest.mark.wheel
def test_json_valued_arguments_survive(table):
    wanted = {
        "model_path": "m",
        "mm_process_config": {"image": {"max_pixels": 100}},
        "lora_paths": [{"lora_name": "a", "lora_path": "b"}],
    }
    parsed = parse(table, render_argv(wanted, table))
    assert {name: parsed.values[name] for name in wanted} == wanted


def test_none_and_a_switch_that_is_off_are_left_out():
    assert render_argv({"pp_size": None, "trust_remote_code": False, "a_list": []}) == []


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("args", "name"),
    [
        ({"pp_sise": 8}, "pp_sise"),
        ({"tp_size": 1, "tensor_parallel_size": 2}, "twice"),
        ({"trust_remote_code": "yes"}, "switch"),
        ({"pp_size": True}, "value"),
        ({"pp_size": [1, 2]}, "list"),
        ({"warmups": None, "served_model_name": ["a"]}, "list"),
    ],
)
def test_what_argv_cannot_carry_is_refused_by_name(table, args, name):
    with pytest.raises(InferopsError) as caught:
        render_argv(args, table)
    assert name in str(caught.value)
    assert caught.value.do


@pytest.mark.wheel
def test_a_misspelled_field_is_answered_with_the_nearest(table):
    with pytest.raises(InferopsError) as caught:
        render_argv({"pp_async_batch_dept": 8}, table)
    assert "pp_async_batch_depth" in caught.value.do


def test_a_list_element_with_a_leading_dash_is_refused():
    with pytest.raises(InferopsError, match="dash"):
        render_argv({"lora_paths": ["-x"]})
