# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Weights and cache per stage against the published arithmetic; the command's three endings."""

from __future__ import annotations

import argparse
import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology import command
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.arguments import SizeArguments, read_argv
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.memory import plan_memory
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.model import ModelShape

CARD_MIB = 97887


@pytest.fixture(scope="module")
def kimi(fixtures):
    return ModelShape.from_config(json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("partition", "gigabytes", "tokens"),
    [
        (None, [62.2, 68.6, 68.6, 78.4, 78.4, 78.4, 78.4, 80.8], 0.70e6),
        ("8,8,8,8,8,7,7,7", [72.0, 78.4, 78.4, 78.4, 78.4, 68.6, 68.6, 71.0], 0.96e6),
    ],
)
def test_stages_of_pp8(kimi, partition, gigabytes, tokens):
    plan = plan_memory(kimi, pp_size=8, partition=partition, gpu_memory_mib=CARD_MIB, mem_fraction_static=0.85)
    # Within 0.1 GB: the source leaves the routers out (0.04 GB a stage).
    assert [stage.weights_bytes / 1e9 for stage in plan.stages] == pytest.approx(gigabytes, abs=0.1)
    assert plan.fits is True
    assert plan.kv_tokens == pytest.approx(tokens, rel=0.02)


def test_all_stages_hold_the_whole_model(kimi):
    for pp_size, tp_size in ((1, 1), (8, 1), (3, 1)):
        plan = plan_memory(kimi, pp_size=pp_size, tp_size=tp_size)
        assert sum(stage.weights_bytes for stage in plan.stages) == pytest.approx(kimi.weights_bytes)


def test_pp8_caches_about_eight_times_the_tokens_of_tp8(kimi):
    pp = plan_memory(kimi, pp_size=8)
    tp = plan_memory(kimi, tp_size=8)
    assert tp.stages[0].kv_bytes_per_token == 70_272
    assert [stage.kv_bytes_per_token for stage in pp.stages] == [8_064] * 3 + [9_216] * 5


def test_what_is_not_given_is_not_decided(kimi):
    plan = plan_memory(kimi, pp_size=8)
    assert (plan.fits, plan.kv_tokens) == (None, None)
    assert plan_memory(kimi, pp_size=8, gpu_memory_mib=CARD_MIB).fits is True
    assert plan_memory(kimi, pp_size=8, gpu_memory_mib=CARD_MIB).kv_tokens is None


def test_an_unknown_model_is_refused_with_what_is_missing_r99():
    with pytest.raises(InferopsError) as caught:
        plan_memory(ModelShape.from_config({"hidden_size": 1}))
    assert "architectures" in caught.value.why


def run(fixtures, tmp_path, argv, facts=None):
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts or {}))
    words = [
        "memory",
        "--model",
        str(fixtures / "models" / "kimi_k2_6" / "config.json"),
        "--facts",
        str(path),
        "--format",
        "json",
        "--",
        *argv,
    ]
    namespace = parser.parse_args(words)
    return namespace.run(namespace)


@pytest.mark.parametrize(
    ("argv", "facts", "status"),
    [
        (["--pp-size", "8", "--mem-fraction-static", "0.85"], {"gpu_memory_mib": CARD_MIB, "gpu_bandwidth_gb_s": 1600}, 0),
        (["--pp-size", "8", "--mem-fraction-static=0.75"], {"gpu_memory_mib": CARD_MIB}, 1),
        (["--pp-size", "8"], {}, 3),
    ],
)
def test_the_command_ends_by_what_it_can_tell(fixtures, tmp_path, capsys, argv, facts, status):
    assert run(fixtures, tmp_path, argv, facts) == status
    report = json.loads(capsys.readouterr().out)
    assert report["fits"] is {0: True, 1: False, 3: None}[status]
    assert len(report["stages"]) == 8 and report["tightest_stage"] == 7
    if status == 0:
        assert [row["bound_tokens_per_s"] for row in report["bounds"]][:1] == [48.5]
    else:
        assert report["bounds"][0]["bound_tokens_per_s"] is None


def test_argv_is_read_literally_with_unambiguous_abbreviations_r101():
    assert read_argv(
        ["--tp", "2", "--pipeline-parallel-size=4", "--mem-frac", "0.8", "--kv-cache-dtype", "fp8_e4m3"]
    ) == SizeArguments(4, 2, 0.8, "fp8_e4m3")
    assert read_argv(["--pp-async-batch-depth", "8", "--model-path", "/m"]) == SizeArguments()
    with pytest.raises(InferopsError, match="ambiguous") as caught:
        read_argv(["--tp", "1", "--pp", "8"])
    assert "--pp-size" in caught.value.do and "--pp-async-batch-depth" in str(caught.value)


@pytest.mark.parametrize(
    "argv",
    [["--pp-size", "eight"], ["--pp-size", "0"], ["--mem-fraction-static", "85"], ["--tp-size"], ["--pp-size", "--tp-size"]],
)
def test_a_value_that_cannot_be_is_refused(argv):
    with pytest.raises(InferopsError):
        read_argv(argv)
