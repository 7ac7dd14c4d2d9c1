# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The published schema of a plan and the reader take the same plans; what the schema calls a default is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import LOAD_KEYS, GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan_limits import LIMITS
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from .schemas import NAMES, PLAN, described, load

ROOT = Path(__file__).resolve().parents[6]
ODD = st.sampled_from([None, True, False, "", "x", "0.5", [], {}, [1], {"limit": 1}, {"x": 1}])
NUMBERS = st.sampled_from(
    [-1, 0, 0.01, 0.05, 0.1, 0.49, 0.5, 0.51, 0.9999, 1, 1.0, 1.5, 2, 2.0, 3, 63, 64, 600.5, 1e3, 86401, 1e13]
)
ANY = st.one_of(NUMBERS, NUMBERS, ODD)


def mapping(*names: str, inner: dict[str, st.SearchStrategy] | None = None, value: st.SearchStrategy = ANY) -> st.SearchStrategy:
    """A mapping with some of the names, seldom an unknown one."""
    optional = {**dict.fromkeys(names, value), **(inner or {})}
    known = st.fixed_dictionaries({}, optional=optional)
    return st.one_of(known, known, known, st.builds(lambda kept, more: {**kept, "unknown": more}, known, ANY))


LIMIT = st.one_of(NUMBERS, ODD, mapping("limit", "tolerance_ratio"))
LOAD = st.one_of(
    st.just({"concurrency": 1}),
    st.just({"rate": 2.5}),
    mapping("concurrency", "rate", "max_in_flight", inner={"arrivals": st.sampled_from(["poisson", "constant", "often", None])}),
)
POINT = st.builds(lambda load, limits: {**load, **limits}, LOAD, st.one_of(st.just({}), mapping(*LIMITS, value=LIMIT)))
CORRECTNESS = mapping(
    "min_distinct_characters",
    "max_cached_tokens_ratio",
    "length_tolerance_ratio",
    "max_first_token_s",
    "multi_turn",
    inner={
        "tool_calls": st.one_of(ODD, mapping("items", "min_valid_ratio")),
        "graded": st.one_of(ODD, mapping("items", "file", "min_accuracy", "min_ratio_to_promoted", "max_tokens", "concurrency")),
        "long_context": st.one_of(ODD, mapping("input_tokens", "max_seconds")),
    },
)
PLANS = st.builds(
    lambda points, rest: {"points": points, **rest},
    st.one_of(st.just([{"concurrency": 1}]), st.lists(st.one_of(POINT, POINT, ODD), max_size=3), ODD),
    mapping(
        *("model", "input_tokens", "output_tokens", "confidence", "min_seconds_per_point", "max_seconds_per_point"),
        *("stall_timeout_s", "temperature", "seed"),
        inner={
            "endpoint": st.one_of(st.sampled_from(["completions", "chat", "generate", "embeddings"]), ANY),
            "prompts": st.one_of(ODD, mapping("file", "fresh"), st.just({"file": "p.txt"})),
            "default_limits": st.one_of(st.sampled_from(["auto", "none", "never"]), ANY),
            "correctness": st.one_of(ODD, CORRECTNESS, CORRECTNESS),
            "sanity": st.one_of(ODD, mapping("prompt", "expect", "max_tokens")),
            "require": st.one_of(ODD, mapping("decode_graph_pass_ratio", "prefill_graph_pass_ratio")),
        },
    ),
)


def with_points(**more):
    return {"points": [{"concurrency": 1}], **more}


def beyond_a_schema(raw):
    """The two rules that a schema cannot state; only asked of plans that fit it."""
    low, high = raw.get("min_seconds_per_point"), raw.get("max_seconds_per_point")
    if (10 if low is None else low) > (180 if high is None else high):
        return True
    length = 256 if raw.get("output_tokens") is None else raw["output_tokens"]
    return any(_above_the_rate(point, length) for point in raw["points"])


def _above_the_rate(point, length):
    limit, rate = point.get("min_output_tokens_per_s"), point.get("rate")
    if limit is None or rate is None:
        return False
    if isinstance(limit, dict):
        limit = limit["limit"] * (1 - (limit.get("tolerance_ratio") or 0))
    return limit > rate * length


@settings(max_examples=400, deadline=None)
@given(PLANS)
@example(with_points(input_tokens=512.0, seed=0.0))
@example(with_points(default_limits=None, correctness={"multi_turn": None}, require={"decode_graph_pass_ratio": None}))
@example({"points": [{"concurrency": None}]})
@example(with_points(correctness={"long_context": True}))
@example(with_points(correctness={"long_context": False, "graded": False, "tool_calls": False}))
@example({"points": [{"concurrency": 1, "min_roofline_ratio": {"limit": 1.5}}]})
def test_schema_and_reader_take_the_same_plans(raw):
    complaints = [f"{error.json_path}: {error.message}" for error in PLAN.iter_errors(raw)]
    try:
        plan = GatePlan.from_dict(raw)
    except InferopsError as exc:
        assert complaints or beyond_a_schema(raw), f"only the reader refuses: {exc}"
        return
    assert not complaints
    assert not beyond_a_schema(raw)
    written = json.loads(json.dumps(plan.as_dict()))
    assert not list(PLAN.iter_errors(written))
    assert GatePlan.from_dict(written) == plan


def edges():
    """Yield (where, plan) with one number at, just inside and just outside each end that the schema states."""
    for where, inner in described(load("gate-plan.schema.json")):
        *path, name = [step for step in where.split("/")[2:] if not step.isdigit() and step != "anyOf"]
        ends = [inner[end] for end in ("minimum", "maximum") if end in inner]
        step = 1 if "integer" in inner.get("type", ()) else 1e-6
        for value in [end + off for end in ends for off in (-step, 0, step)]:
            if path[0] in ("correctness", "sanity", "plan"):
                plan = with_points(min_seconds_per_point=0)
                place = plan if path[0] == "plan" else plan.setdefault(path[0], {})
                for step_in in path[1:]:
                    place = place.setdefault(step_in, {"input_tokens": 1000} if step_in == "long_context" else {})
                place[name] = value
            elif path[0] == "point":
                at_a_rate = {"rate": 1} if name in ("rate", "max_in_flight") else {"concurrency": 1}
                plan = {"points": [{**at_a_rate, name: value}]}
            else:
                limit = {"limit": 0.5, name: value}
                name_of = "min_roofline_ratio" if path[0] == "share" else "max_itl_p50_ms"
                plan = {"points": [{"concurrency": 1, name_of: limit}]}
            yield f"{where} {value}", plan


def test_ends_are_the_same():
    seen = 0
    for where, plan in edges():
        allowed = not list(PLAN.iter_errors(plan))
        try:
            GatePlan.from_dict(plan)
        except InferopsError as exc:
            assert not allowed or beyond_a_schema(plan), f"{where}: {exc}"
        else:
            assert allowed, where
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("value", [0, -1e-6, 1, 1 + 1e-6, 1e12, 1.1e12])
def test_ends_of_limits_are_the_same(limit, value):
    tolerances = [{"limit": 0.5, "tolerance_ratio": each} for each in (-1e-6, 0, 0.5, 0.5 + 1e-6)]
    for written in (value, {"limit": value}, *tolerances):
        plan = {"points": [{"concurrency": 1, limit: written}]}
        try:
            GatePlan.from_dict(plan)
        except InferopsError:
            assert list(PLAN.iter_errors(plan))
        else:
            assert not list(PLAN.iter_errors(plan))


def test_both_take_whole_plans_and_refuse_each_fault():
    """So that the property above cannot hold by refusing everything."""
    whole = with_points(
        model="m",
        endpoint="chat",
        prompts={"file": "p.jsonl", "fresh": False},
        correctness={"graded": {"items": 20}, "tool_calls": True, "long_context": {"input_tokens": 1000}},
        require={"decode_graph_pass_ratio": 0.99},
        sanity={"prompt": "x", "expect": None},
    )
    whole["points"].append({"rate": 2, "arrivals": "constant", "min_goodput_ratio": 0.9})
    whole["points"].append({"concurrency": 2, "max_ttft_p99_ms": {"limit": 100, "tolerance_ratio": 0.1}})
    assert not list(PLAN.iter_errors(whole))
    GatePlan.from_dict(whole)
    for fault in (
        {"seed": -1},
        {"confidence": 95},
        {"sanity": {"answer": "x"}},
        {"default_limits": "never"},
        {"endpoint": "chats"},
        {"modell": "m"},
    ):
        assert list(PLAN.iter_errors({**whole, **fault}))
        with pytest.raises(InferopsError):
            GatePlan.from_dict({**whole, **fault})


def test_what_the_schema_calls_a_default_is_the_readers():
    correctness = {"tool_calls": True, "graded": True, "long_context": {"input_tokens": 64}}
    read = GatePlan.from_dict(with_points(correctness=correctness, prompts={"file": "p.txt"}))
    plain, schema = read.as_dict(), load("gate-plan.schema.json")
    open_load = GatePlan.from_dict({"points": [{"rate": 2}]}).as_dict()["points"][0]
    stated = 0
    for where, inner in described(schema):
        if "default" not in inner or where.endswith("tolerance_ratio"):
            continue
        if where.startswith("/$defs/point/"):
            assert open_load[where.rsplit("/", 1)[1]] == inner["default"], where
            continue
        *path, name = where.removeprefix("/$defs/").removeprefix("plan/").split("/")
        value = plain
        for step in [step for step in path if not step.isdigit() and step != "anyOf"]:
            value = value[step]
        assert value[name] == inner["default"], where
        stated += 1
    assert stated > 15


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid_and_describe_every_key(name):
    schema = load(name)
    Draft202012Validator.check_schema(schema)
    # Limits share one shape: its two keys are described where they are explained.
    bare = {where for where, inner in described(schema) if not inner.get("description") and "$ref" not in inner}
    assert {where.rsplit("/", 1)[1] for where in bare} <= {"limit", "phase"}


def test_schema_names_every_limit():
    assert set(load("gate-plan.schema.json")["$defs"]["point"]["properties"]) == {*LOAD_KEYS, *LIMITS}
    metrics = load("gate-result.schema.json")["$defs"]["judged_limit"]["properties"]["metric"]["enum"]
    assert set(metrics) == {*LIMITS, "min_valid_ratio", "min_accuracy"}


def test_plans_in_the_profiles_fit():
    profiles = sorted((ROOT / "roles" / "sglang_service" / "files" / "profiles").glob("*.yml"))
    plans = [plan for path in profiles if (plan := _plan_in(yaml.safe_load(path.read_text(encoding="utf-8"))))]
    assert plans
    for plan in plans:
        assert not list(PLAN.iter_errors(plan))


def _plan_in(value):
    if isinstance(value, dict):
        if isinstance(value.get("points"), list):
            return value
        return next((found for inner in value.values() if (found := _plan_in(inner))), None)
    return None
