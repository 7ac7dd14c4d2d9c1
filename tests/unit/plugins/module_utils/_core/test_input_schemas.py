# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The published schemas of profiles and facts say what the code says: same keys, same files accepted, same files refused."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.module_utils._core import profile
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import LEAST_SM, PLATFORMS, Facts
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parents[5]
SCHEMAS = {path.name.partition(".")[0]: json.loads(path.read_text("utf-8")) for path in (ROOT / "docs/schemas").glob("*.json")}
REGISTRY = Registry().with_resources([(f"{name}.schema.json", Resource.from_contents(data)) for name, data in SCHEMAS.items()])
PROFILES = sorted((ROOT / "roles/sglang_service/files/profiles").glob("*.yml"))
READ = {"profile": profile.validate_profile, "facts": Facts.from_dict}
SMALL = {"model": {"served_name": "m"}}


def errors(kind, data):
    return [error.message for error in Draft202012Validator(SCHEMAS[kind], registry=REGISTRY).iter_errors(data)]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_is_a_schema(name):
    Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_shipped_profile_is_valid(path):
    assert errors("profile", yaml.safe_load(path.read_text("utf-8"))) == []


def test_keys_are_those_that_the_code_knows():
    told = SCHEMAS["profile"]["properties"]
    assert set(told) == {*profile.WORDS, *profile.SECTIONS}
    for section, keys in profile.SECTIONS.items():
        assert set(told[section].get("properties", ())) == set(keys or ())
    told = SCHEMAS["facts"]["properties"]
    assert set(told) == {field.name for field in fields(Facts)}
    assert told["platform"]["enum"] == [*PLATFORMS, None] and told["sm"]["minimum"] == LEAST_SM


@pytest.mark.parametrize(
    ("kind", "data", "named"),
    [
        ("profile", {**SMALL, "hardwear": {}}, "hardwear"),
        ("profile", {**SMALL, "hardware": {"gpus": 8}}, "gpus"),
        ("profile", {**SMALL, "topology": {"pp_size": 0}}, "pp_size"),
        ("profile", {"model": {"path": "/m"}}, "served_name"),
        ("facts", {"gpu_memory": 97887}, "gpu_memory"),
        ("facts", {"sm": 12}, "sm"),
        ("facts", {"platform": "gpu"}, "platform"),
        ("facts", {"packages": ["torch"]}, "packages"),
    ],
)
def test_what_is_wrong_is_refused_by_both_and_named(kind, data, named):
    with pytest.raises(InferopsError) as refused:
        READ[kind](data)
    assert named in str(refused.value)
    found = list(Draft202012Validator(SCHEMAS[kind], registry=REGISTRY).iter_errors(data))
    assert any(named in error.message or named in error.absolute_path for error in found)


def test_a_profile_with_a_limit_that_does_not_exist_is_refused_by_the_plan_inside():
    plan = {"points": [{"concurrency": 1, "min_tokens": 3}]}
    assert errors("profile", {**SMALL, "gate": {"plan": plan}}) != []
    assert errors("profile", {**SMALL, "gate": {"plan": {"points": [{"concurrency": 1}]}}}) == []
