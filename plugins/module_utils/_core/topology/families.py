# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which model families' weights can be counted from config.json, and how each names its parts.

Each entry was read from the model's own config keys and SGLang's srt/models/<family>.py. An architecture that is
not here is not guessed at: hybrid, sparse or linear attention has other weights and another cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Family = Literal["mla", "gqa"]

FAMILIES: dict[str, Family] = {
    "DeepseekV2ForCausalLM": "mla",
    "DeepseekV3ForCausalLM": "mla",
    "KimiK25ForConditionalGeneration": "mla",
    "KimiVLForConditionalGeneration": "mla",
    "GptOssForCausalLM": "gqa",
    "LlamaForCausalLM": "gqa",
    "MistralForCausalLM": "gqa",
    "MixtralForCausalLM": "gqa",
    "Qwen2ForCausalLM": "gqa",
    "Qwen2MoeForCausalLM": "gqa",
    "Qwen3ForCausalLM": "gqa",
    "Qwen3MoeForCausalLM": "gqa",
}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part that describes the language model: multimodal configs nest it."""
    for key in ("text_config", "llm_config", "language_config"):
        nested = config.get(key)
        if isinstance(nested, Mapping):
            return nested
    return config


def first_of(config: Mapping[str, Any], *keys: str) -> Any:
    """Return the first value present under one of several names, else None."""
    return next((config[key] for key in keys if config.get(key) is not None), None)


def is_moe_layer(text: Mapping[str, Any], index: int) -> bool:
    """Tell whether decoder layer ``index`` has routed experts.

    Sources: srt/models/deepseek_v2.py (first_k_dense_replace, moe_layer_freq), qwen3_moe.py (decoder_sparse_step,
    mlp_only_layers); Mixtral and GPT-OSS have them in every layer.
    """
    if not expert_count(text):
        return False
    if "first_k_dense_replace" in text:
        return index >= int(text["first_k_dense_replace"]) and index % int(text.get("moe_layer_freq") or 1) == 0
    if index in (text.get("mlp_only_layers") or ()):
        return False
    return (index + 1) % int(text.get("decoder_sparse_step") or 1) == 0


def expert_count(text: Mapping[str, Any]) -> int:
    return int(first_of(text, "n_routed_experts", "num_experts", "num_local_experts") or 0)


def shared_expert_width(text: Mapping[str, Any]) -> int:
    """Return the intermediate size of all shared experts together; 0 where the family has none."""
    if text.get("shared_expert_intermediate_size"):
        return int(text["shared_expert_intermediate_size"])
    return int(text.get("n_shared_experts") or 0) * int(text.get("moe_intermediate_size") or 0)
