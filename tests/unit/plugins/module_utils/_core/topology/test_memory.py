# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Weights and cache per stage against the published arithmetic; the command's three endings."""

from __future__ import annotations

import argparse
import itertools
import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology import command
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.arguments import SizeArguments, read_argv
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.memory import plan_memory
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.model import ModelShape
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.split import best_split
from hypothesis import given
from hypothesis import strategies as st

CARD_MIB = 97887


@pytest.fixture(scope="module")
def kimi(fixtures):
    return ModelShape.from_config(json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("partition", "gigabytes", "tokens"),
    [
        (None, [62.2, 68.6, 68.6, 78.4, 78.4, 78.4, 78.4, 80.8], 0.60e6),
        ("8,8,8,8,8,7,7,7", [72.0, 78.4, 78.4, 78.4, 78.4, 68.6, 68.6, 71.0], 0.85e6),
    ],
)
def test_stages_of_pp8(kimi, partition, gigabytes, tokens):
    plan = plan_memory(kimi, pp_size=8, partition=partition, gpu_memory_mib=CARD_MIB, mem_fraction_static=0.85)
    # Within 0.1 GB: the source leaves the routers out (0.04 GB a stage), and the vision tower, which every stage holds.
    vision = kimi.vision_held(1)
    assert [(stage.weights_bytes - vision) / 1e9 for stage in plan.stages] == pytest.approx(gigabytes, abs=0.1)
    assert plan.fits is True
    assert plan.kv_tokens == pytest.approx(tokens, rel=0.02)


def test_all_stages_hold_the_whole_model(kimi):
    for pp_size, tp_size in ((1, 1), (8, 1), (3, 1)):
        plan = plan_memory(kimi, pp_size=pp_size, tp_size=tp_size)
        copies = (pp_size - 1) * kimi.vision_held(1)  # the tower is made on every stage
        assert sum(stage.weights_bytes for stage in plan.stages) == pytest.approx(kimi.weights_bytes + copies)


def test_pp8_caches_about_eight_times_the_tokens_of_tp8(kimi):
    pp = plan_memory(kimi, pp_size=8)
    tp = plan_memory(kimi, tp_size=8)
    assert tp.stages[0].kv_bytes_per_token == 70_272
    assert [stage.kv_bytes_per_token for stage in pp.stages] == [8_064] * 3 + [9_216] * 5


def test_the_checkpoint_is_as_large_as_published(kimi):
    """Published: 595 GB. Counted by hand from the config, beside the code: parameters × bits of each part."""
    assert kimi.weights_bytes / 1e9 == pytest.approx(595, abs=0.5)
    experts = 60 * 384 * 3 * 7168 * 2048 * 4.5 / 8
    shared = 60 * 3 * 7168 * 2048 * 2
    latent = 1536 * 7168 + 7168 * 576 + 1536 * 64 * 192 + 512 * 64 * 256 + 64 * 128 * 7168
    rest = (61 * latent + 3 * 7168 * 18432 + 60 * 7168 * 384 + 2 * 163840 * 7168) * 2
    assert kimi.weights_bytes - kimi.vision_held(1) == pytest.approx(experts + shared + rest, rel=1e-9)
    # ~0.4 B in the tower by its publisher; the projector comes to it.
    assert 0.4e9 < kimi.vision_held(1) / 2 < 0.5e9


@pytest.mark.parametrize("partition", [None, "10,8,8,7,7,7,6,8"])
def test_the_cache_is_sized_as_sglang_does_it(fixtures, partition):
    """(free after loading − free before × (1 − fraction)) of the fullest rank, by the largest cell, over all ranks.

    With four dense layers in front the longest stage is not the fullest: neither alone gives the answer.
    """
    config = json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8"))
    config["text_config"]["first_k_dense_replace"] = 4
    known = {"pp_size": 8, "partition": partition, "gpu_memory_mib": CARD_MIB, "mem_fraction_static": 0.85}
    plan = plan_memory(ModelShape.from_config(config), **known)
    free_before = CARD_MIB * 1024 * 1024
    free_after = min(free_before - stage.weights_bytes for stage in plan.stages)
    rest = free_after - free_before * (1 - 0.85)
    assert plan.kv_tokens == min(int(rest // stage.kv_bytes_per_token) for stage in plan.stages)
    alone = min(stage.kv_tokens for stage in plan.stages)
    assert plan.kv_tokens == alone if partition is None else plan.kv_tokens < alone


def test_whole_pages_and_a_cap_of_the_user(kimi):
    known = {"pp_size": 8, "gpu_memory_mib": CARD_MIB, "mem_fraction_static": 0.85}
    assert plan_memory(kimi, page_tokens=64, **known).kv_tokens % 64 == 0
    assert plan_memory(kimi, max_total_tokens=100_000, **known).kv_tokens == 100_000


def test_dp_attention_holds_more_copies_of_attention_and_of_kv_heads(fixtures):
    path = fixtures / "models" / "qwen3_moe" / "config.json"
    shape = ModelShape.from_config(json.loads(path.read_text(encoding="utf-8")))
    split, copied = plan_memory(shape, tp_size=4).stages[0], plan_memory(shape, tp_size=4, attention_tp=1).stages[0]
    assert copied.weights_bytes > split.weights_bytes
    assert copied.kv_bytes_per_token == pytest.approx(4 * split.kv_bytes_per_token)
    assert SizeArguments.from_values({"tp_size": 8, "dp_size": 4, "enable_dp_attention": True}).attention_tp == 2
    assert SizeArguments.from_values({"tp_size": 8, "attn_dp_size": 8}).attention_tp == 1
    assert SizeArguments.from_values({"tp_size": 8, "dp_size": 4}).attention_tp is None


def test_another_split_is_named_where_it_caches_more_and_only_there(kimi):
    known = {"pp_size": 8, "gpu_memory_mib": CARD_MIB, "mem_fraction_static": 0.85}
    plan = plan_memory(kimi, **known)
    assert plan.better.kv_tokens == plan_memory(kimi, partition=plan.better.layers, **known).kv_tokens > plan.kv_tokens
    assert max(plan.better.layers) <= 8 and sum(plan.better.layers) == 61
    assert plan_memory(kimi, partition=plan.better.layers, **known).better is None
    assert plan_memory(kimi, max_total_tokens=100_000, **known).better is None, "the cap is reached either way"


@given(
    st.lists(st.floats(1, 10), min_size=4, max_size=9).flatmap(lambda w: st.tuples(st.just(w), st.integers(2, min(4, len(w))))),
    st.floats(0, 10),
    st.floats(0, 10),
)
def test_the_best_split_beats_every_other_one(case, first, last):
    weights, pp_size = case
    room, most = sum(weights) + first + last + 1, len(weights)

    def tokens(split):
        bounds = [sum(split[:rank]) for rank in range(pp_size + 1)]
        held = [sum(weights[a:b]) for a, b in itertools.pairwise(bounds)]
        held[0] += first
        held[-1] += last
        return (room - max(held)) / max(split)

    every = [split for split in itertools.product(range(1, most + 1), repeat=pp_size) if sum(split) == len(weights)]
    found = best_split(
        weights, pp_size=pp_size, room_bytes=room, kv_bytes=1.0, most_layers=most, first_bytes=first, last_bytes=last
    )
    assert tokens(found) == pytest.approx(max(tokens(split) for split in every))


def test_what_is_not_given_is_not_decided(kimi):
    plan = plan_memory(kimi, pp_size=8)
    assert (plan.fits, plan.kv_tokens) == (None, None)
    assert plan_memory(kimi, pp_size=8, gpu_memory_mib=CARD_MIB).fits is True
    assert plan_memory(kimi, pp_size=8, gpu_memory_mib=CARD_MIB).kv_tokens is None


def test_an_unknown_model_is_refused_with_what_is_missing_r99():
    with pytest.raises(InferopsError) as caught:
        plan_memory(ModelShape.from_config({"hidden_size": 1}))
    assert "architectures" in caught.value.why


def run(fixtures, tmp_path, argv, facts=None, more=("--format", "json")):
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
        *more,
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


@pytest.mark.parametrize(
    ("partition", "status", "words"),
    [
        ("8,8,8,8,8,8,8,8", 1, "it sums to 64, the model has 61 layers"),
        ("8,8,8,8,8,8,8", 1, "it has 7 entries, pp_size is 8"),
        ("7,7,7,8,8,8,8,8", 0, "fits"),
    ],
)
def test_r18_a_layer_split_that_cannot_be_is_refused(fixtures, tmp_path, capsys, partition, status, words):
    argv = ["--pp-size", "8", "--mem-fraction-static", "0.85"]
    more = ["--env", f"SGLANG_PP_LAYER_PARTITION={partition}"]
    assert run(fixtures, tmp_path, argv, {"gpu_memory_mib": CARD_MIB}, more) == status
    assert words in capsys.readouterr().out
    assert run(fixtures, tmp_path, argv, {"gpu_memory_mib": CARD_MIB}, [*more, "--format", "json"]) == status
    json.loads(capsys.readouterr().out)


def test_the_text_has_a_bar_per_stage_and_says_what_was_not_counted(fixtures, tmp_path, capsys):
    assert run(fixtures, tmp_path, ["--pp-size", "8", "--mem-fraction-static", "0.85"], {"gpu_memory_mib": CARD_MIB}, []) == 0
    text = capsys.readouterr().out
    bars = [line.split()[9] for line in text.splitlines() if line.split()[:1] and line.split()[0] in "01234567" and "#" in line]
    assert [len(bar) for bar in bars] == [40] * 8
    # The last stage: 81.8 of 102.6 GB weights, 85 % static.
    assert (bars[7].count("#"), bars[7].count("+")) == (32, 2)
    assert "not counted: activations, CUDA graphs" in text
    assert "warning: SGLANG_PP_LAYER_PARTITION=" in text


@pytest.mark.wheel
def test_r76_the_margin_is_compared_with_the_release_s_own(fixtures, tmp_path, capsys, wheel):
    facts = {"platform": "cuda", "sm": 120, "gpu_count": 8, "gpu_memory_mib": CARD_MIB, "gpu_name": "NVIDIA RTX PRO 6000"}
    more = ["--source", str(wheel("0.5.12")), "--format", "json"]
    argv = ["--model-path", "m", "--pp-size", "8"]
    assert run(fixtures, tmp_path, [*argv, "--mem-fraction-static", "0.98"], facts, more) == 0
    asked = json.loads(capsys.readouterr().out)
    (margin,) = [warning for warning in asked["warnings"] if warning.startswith("mem_fraction_static")]
    # (97887 − reserve) / 97887 rounded to 3 places, × 0.95 and the factor of the vision tower, executed on 0.5.12.
    assert asked["own_mem_fraction_static"] == pytest.approx(0.7769, abs=0.0001)
    assert "0.98 leaves 2.1 GB" in margin and "22.9 GB" in margin and "srt/server_args.py:" in margin
    assert run(fixtures, tmp_path, argv, facts, more) == 1
    own = json.loads(capsys.readouterr().out)
    assert own["mem_fraction_static"] == asked["own_mem_fraction_static"]
    assert not [warning for warning in own["warnings"] if warning.startswith("mem_fraction_static")]


@pytest.mark.wheel
def test_what_the_release_refuses_could_not_be_planned(fixtures, tmp_path, wheel):
    with pytest.raises(InferopsError, match=r"0\.5\.12 refuses the arguments"):
        run(fixtures, tmp_path, ["--model-path", "m", "--pp", "8"], {}, ["--source", str(wheel("0.5.12"))])


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
