"""What config.json and the model's code say, on every release: its architecture is named, its code can be split into stages."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import SourceTree, open_source
from known_hosts import RTX_PRO_6000 as FACTS

pytestmark = pytest.mark.wheel
# The first with --pp-size, then one of each minor. K2.5 can be pipelined from 0.5.10 on.
BEFORE = (
    *("0.4.6.post2", "0.4.7", "0.4.8", "0.4.9", "0.4.10", "0.5.1", "0.5.2", "0.5.3", "0.5.4", "0.5.5", "0.5.6", "0.5.6.post2"),
    *("0.5.7", "0.5.8", "0.5.9"),
)
SINCE = (
    *("0.5.10", "0.5.11", "0.5.12", "0.5.13", "0.5.14", "0.5.15", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21"),
    *("0.5.22", "0.5.23"),
)
SHAPES = ("0.4.6", "0.4.6.post5", "0.4.10.post2", "0.5.3", "0.5.9", "0.5.12", "0.5.14", "0.5.18", "0.5.19", "0.5.23")
STAGES = ["--model-path", "m", "--tp-size", "8", "--pp-size", "2", "--nnodes", "2"]


@pytest.fixture(scope="module")
def config(fixtures):
    return lambda name: json.loads((fixtures / "oracle" / "models" / name / "config.json").read_text())


def found(report, code):
    return [finding for finding in report.findings if finding.code == code]


@pytest.mark.parametrize("version", BEFORE)
def test_r1_before_0_5_10_k2_5_in_stages_is_an_error(wheel, config, version):
    """An architecture that this release cannot pipeline is told before an hour of loading (R1)."""
    report = check(STAGES, source_root=wheel(version), facts=FACTS, model_config=config("kimi_k25"), env={})
    (one,) = found(report, "SGA404")
    assert (one.level, one.flag, report.exit_status) == ("error", "--pp-size", 1)
    assert "KimiK25ForConditionalGeneration" in one.message
    rel, _, line = one.source.rpartition(":")
    assert open_source(wheel(version)).read(rel).splitlines()[int(line) - 1].strip()
    # Only where ModelRunner insists may it be said to stop after loading.
    runner = open_source(wheel(version)).read("srt/model_executor/model_runner.py")
    assert ("stop only after" in one.why) is ("Pipeline Parallel is not compatible" in runner)


@pytest.mark.parametrize("version", SINCE)
def test_r1_from_0_5_10_on_k2_5_runs_in_stages(wheel, config, version):
    report = check(STAGES, source_root=wheel(version), facts=FACTS, model_config=config("kimi_k25"), env={})
    assert found(report, "SGA404") == []


@pytest.mark.parametrize("version", ["0.4.6.post5", "0.5.5", "0.5.9"])
def test_r1_another_model_or_one_stage_or_code_of_ones_own_is_not_accused(wheel, config, version):
    tree = open_source(wheel(version))
    assert found(check(STAGES, source_root=tree, model_config=config("llama"), env={}), "SGA404") == []
    assert found(check(STAGES[:4], source_root=tree, model_config=config("kimi_k25"), env={}), "SGA404") == []
    own = {"SGLANG_EXTERNAL_MODEL_PACKAGE": "mine"}
    assert found(check(STAGES, source_root=tree, model_config=config("kimi_k25"), env=own), "SGA404") == []


@pytest.mark.parametrize(("version", "can"), [("0.5.9", False), ("0.5.12", True)])
def test_r1_a_model_without_a_file_of_its_own_runs_as_transformers_can(wheel, config, version, can):
    strange = config("llama") | {"architectures": ["SomethingNewForCausalLM"]}
    tree = open_source(wheel(version))
    assert bool(found(check(STAGES, source_root=tree, model_config=strange, env={}), "SGA404")) is not can
    asked = check([*STAGES, "--model-impl", "transformers"], source_root=tree, model_config=config("llama"), env={})
    assert bool(found(asked, "SGA404")) is not can


@pytest.mark.parametrize("version", SHAPES)
@pytest.mark.parametrize("given", ["absent", None, []])
def test_r99_a_config_without_architectures_names_the_missing_key(wheel, config, version, given):
    """No start is attempted on a config.json without architectures (R99)."""
    raw = config("llama")
    raw.pop("architectures")
    raw |= {} if given == "absent" else {"architectures": given}
    report = check(["--model-path", "m", "--tp-size", "8"], source_root=wheel(version), facts=FACTS, model_config=raw, env={})
    (one,) = found(report, "SGA405")
    assert (one.level, one.where, report.exit_status) == ("error", "config.json: architectures", 1)
    assert one.do


def test_r99_a_named_architecture_or_no_config_at_all_is_not_accused(wheel, config):
    tree: SourceTree = open_source(wheel("0.5.23"))
    raw = config("llama")
    assert found(check(STAGES, source_root=tree, model_config=raw, env={}), "SGA405") == []
    assert found(check(STAGES, source_root=tree, env={}), "SGA405") == []
    raw.pop("architectures")
    told = [*STAGES, "--json-model-override-args", '{"architectures": ["LlamaForCausalLM"]}']
    assert found(check(told, source_root=tree, model_config=raw, env={}), "SGA405") == []
