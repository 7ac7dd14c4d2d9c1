# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sizes from config.json against the arithmetic of the published checkpoint; what is missing is named, not guessed."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.model import ModelShape
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.quantization import Quantization
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def config(fixtures, name):
    return json.loads((fixtures / "models" / name / "config.json").read_text(encoding="utf-8"))


@pytest.fixture
def kimi(fixtures):
    return config(fixtures, "kimi_k2_6")


def test_the_kimi_checkpoint_adds_up_to_its_published_size(kimi):
    shape = ModelShape.from_config(kimi)
    # 570.8 GB of routed experts, 23.1 GB in BF16, 0.33 GB of routers, 0.94 GB of vision tower; published: about 595 GB.
    assert shape.weights_bytes / 1e9 == pytest.approx(593.9 + 0.33 + 0.94, abs=0.1)
    experts = sum(layer.expert * layer.experts for layer in shape.layers)
    assert experts / 1e9 == pytest.approx(570.8, abs=0.05)
    assert (shape.architecture, shape.num_layers, shape.unknown) == ("KimiK25ForConditionalGeneration", 61, ())
    assert shape.uncounted == ()
    other = ModelShape.from_config({**kimi, "architectures": ["KimiVLForConditionalGeneration"]})
    assert other.uncounted == ("vision tower",)


def test_one_layer_of_each_kind_has_the_expected_size(kimi):
    layers = ModelShape.from_config(kimi).layers
    assert (layers[0].experts, layers[1].experts) == (0, 384)
    assert layers[0].total / 1e9 == pytest.approx(0.99, abs=0.01)
    assert layers[1].total / 1e9 == pytest.approx(9.80, abs=0.02)
    # The MLA projections: 101.1 M parameters in BF16.
    assert (layers[1].attention + layers[1].attention_replicated) / 2e6 == pytest.approx(101.1, abs=0.05)


def test_the_mla_cache_is_replicated_under_tp_and_grouped_heads_are_split(kimi, fixtures):
    shape = ModelShape.from_config(kimi)
    assert shape.kv_bytes() * 61 == 70_272
    assert shape.kv_bytes(tp_size=8) == shape.kv_bytes()
    assert shape.kv_bytes(kv_cache_dtype="fp8_e4m3") * 2 == shape.kv_bytes()
    assert shape.kv_bytes(kv_cache_dtype="not a type") is None
    llama = ModelShape.from_config(config(fixtures, "llama"))
    assert llama.kv_bytes() == 2 * 8 * 128 * 2
    assert llama.kv_bytes(tp_size=4) * 4 == llama.kv_bytes()
    assert llama.kv_bytes(tp_size=16) * 8 == llama.kv_bytes(), "below one head per rank the heads are replicated"


@pytest.mark.parametrize(("name", "billions"), [("llama", 8.03), ("qwen3_moe", 30.5)])
def test_other_families_add_up_to_their_names(fixtures, name, billions):
    assert ModelShape.from_config(config(fixtures, name)).weights_bytes / 2e9 == pytest.approx(billions, rel=0.01)


def test_a_config_without_architectures_is_named_and_not_guessed_r99(kimi):
    del kimi["architectures"]
    shape = ModelShape.from_config(kimi)
    assert "architectures" in shape.unknown
    assert shape.weights_bytes is None and shape.layers is None


def test_an_architecture_not_known_here_stays_unknown(kimi):
    kimi["architectures"] = ["SomethingNewForCausalLM"]
    shape = ModelShape.from_config(kimi)
    assert shape.layers is None and shape.kv_bytes() is None
    assert any("SomethingNewForCausalLM" in item for item in shape.unknown)


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "kv_lora_rank", "moe_intermediate_size", "num_experts_per_tok"]
)
def test_a_missing_key_is_named(kimi, key):
    del kimi["text_config"][key]
    shape = ModelShape.from_config(kimi)
    if key == "moe_intermediate_size":
        # The family falls back on intermediate_size, so the shared experts have no size of their own.
        assert shape.layers is not None
    else:
        assert key in shape.unknown and shape.weights_bytes is None


def test_a_missing_dtype_and_an_unknown_method_are_named(kimi):
    no_dtype = copy.deepcopy(kimi)
    del no_dtype["torch_dtype"], no_dtype["text_config"]["torch_dtype"]
    assert ModelShape.from_config(no_dtype).weights_bytes is None
    kimi["quantization_config"] = {"quant_method": "of tomorrow"}
    shape = ModelShape.from_config(kimi)
    assert shape.weights_bytes is None and any("of tomorrow" in item for item in shape.unknown)


ANYTHING = st.none() | st.integers() | st.text() | st.just(["LlamaForCausalLM"]) | st.just({}) | st.just([1])
KEYS = [
    "architectures",
    "hidden_size",
    "num_hidden_layers",
    "num_experts",
    "quantization_config",
    "torch_dtype",
    "mlp_only_layers",
]


# A busy machine makes nested values slowly; that is no fault of what is tested.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING))
def test_no_damaged_config_makes_it_raise(fixtures, damage):
    for name in ("llama", "qwen3_moe"):
        ModelShape.from_config(config(fixtures, name) | damage)
        ModelShape.from_config({"architectures": ["LlamaForCausalLM"], "text_config": config(fixtures, name) | damage} | damage)


INT4 = {"num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": True, "type": "int"}


@pytest.mark.parametrize(
    ("raw", "name", "bits"),
    [
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"], "weights": INT4}}},
            "model.layers.1.mlp.experts.0.gate_proj",
            4.5,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"targets": ["Linear"], "weights": INT4}},
                "ignore": ["re:.*self_attn.*"],
            },
            "model.layers.1.self_attn.o_proj",
            16,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"targets": ["Linear"], "weights": INT4}},
                "ignore": ["lm_head"],
            },
            "lm_head",
            16,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"targets": ["Linear"], "weights": INT4 | {"symmetric": False}}},
            },
            "x",
            4.625,
        ),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "model.layers.0.mlp.gate_proj", 8 + 32 / 16384),
        ({"quant_method": "fp8"}, "lm_head", 16),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "x", 4 + 20 / 128),
        ({"quant_method": "mxfp4"}, "model.layers.0.mlp.experts.0.gate_proj", 4.25),
        ({"quant_method": "mxfp4"}, "model.layers.0.self_attn.o_proj", 16),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "x", 4.5),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "x", None),
        (None, "x", 16),
    ],
)
def test_bits_per_parameter(raw, name, bits):
    assert Quantization.from_config(raw, "bfloat16").bits(name) == bits
