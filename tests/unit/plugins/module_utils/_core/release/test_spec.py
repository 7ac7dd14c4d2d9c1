"""The release spec: what is refused, and what the id depends on."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import unit_texts
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec

from .releases import spec_dict


def release_id(**changes):
    return ReleaseSpec.from_dict(spec_dict(**changes)).id


def test_id_changes_with_what_needs_a_restart_and_only_then():
    assert release_id() == release_id(plan={"points": []}, expect={}, timeouts={})
    assert len({release_id(), release_id(depth=0), release_id(env={"A": "1"}), release_id(unit=spec_dict()["unit"] + "\n")}) == 4


def test_a_new_version_of_our_own_tools_is_not_a_new_release():
    old = spec_dict()
    tools = {name: path.replace("/tools/", "/tools/next-") for name, path in old["tools"].items()}
    assert tools != old["tools"]
    unit = old["unit"]
    for name, path in old["tools"].items():
        assert path in unit
        unit = unit.replace(path, tools[name])
    assert release_id() == release_id(unit=unit, tools=tools)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("timout",), {}, "timeouts"),
        (("timeouts", "drain"), 3, "drain"),
        (("timeouts", "drain_s"), 0, "drain_s"),
        (("instance",), "a--b", "instance"),
        (("instance",), "../x", "instance"),
        (("port",), True, "port"),
        (("argv",), ["--api-key", "k"], "API key"),
        (("argv",), ["--api_key=k"], "API key"),
        (("argv",), [1], "argv"),
        (("unit",), "[Service]\n", "@RELEASE@"),
        (("front",), {"kind": "door"}, "front.kind"),
        (("engine",), {}, "version"),
    ],
)
def test_wrong_values_are_refused_by_name(path, value, named):
    data = copy.deepcopy(spec_dict())
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(InferopsError) as refusal:
        ReleaseSpec.from_dict(data)
    assert named in str(refusal.value)


def test_unit_that_starts_other_words_than_were_checked_is_refused():
    spec = ReleaseSpec.from_dict(spec_dict(argv=[*spec_dict()["argv"], "--disable-cuda-graph"]))
    with pytest.raises(InferopsError, match="other words"):
        unit_texts.check_exec(spec)


def test_run_unit_cannot_be_enabled_and_gives_way_to_the_promoted_one():
    text = unit_texts.run_unit_text(ReleaseSpec.from_dict(spec_dict()))
    assert "[Install]" not in text
    assert "Conflicts=sglang-kimi.service" in text
    assert "@RELEASE@" not in text
