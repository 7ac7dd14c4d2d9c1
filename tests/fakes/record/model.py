"""A tiny model of Kimi K2's shape: configuration and a byte-level tokenizer, weights are dummy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}<|im_{{ m['role'] }}|>{{ m['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_assistant|>{% endif %}"
)
SPECIAL = [
    "<|pad|>",
    "<|bos|>",
    "<|eos|>",
    "<|im_user|>",
    "<|im_assistant|>",
    "<|im_system|>",
    "<|im_end|>",
    "<think>",
    "</think>",
]


def config(num_layers: int = 8, vocabulary: int = 2048) -> dict[str, object]:
    return {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "torch_dtype": "bfloat16",
        "hidden_size": 64,
        "intermediate_size": 128,
        "moe_intermediate_size": 32,
        "num_hidden_layers": num_layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "routed_scaling_factor": 2.5,
        "norm_topk_prob": True,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "q_lora_rank": 32,
        "kv_lora_rank": 32,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
        "max_position_embeddings": 8192,
        "rope_theta": 10000.0,
        "rope_scaling": {
            "type": "yarn",
            "factor": 2.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        "num_nextn_predict_layers": 0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def write_model(folder: Path, *, num_layers: int = 8, vocabulary: int = 2048) -> Path:
    """Write config.json and the tokenizer files; needs the package ``tokenizers``."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    # Plain words are one token each, as in real vocabularies; made-up ones fill the rest, so that every id below has a text.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "plugins" / "module_utils"))
    from _core.gate.prompts import SYLLABLES, WORDS

    made_up = (f" {a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES)
    tokenizer.train_from_iterator([*(f"{word} {word}" for word in WORDS for dummy in range(50)), *made_up], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|bos|>",
        "eos_token": "<|eos|>",
        "pad_token": "<|pad|>",
        "chat_template": TEMPLATE,
        "model_max_length": 8192,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    (folder / "config.json").write_text(json.dumps(config(num_layers, vocabulary), indent=1))
    return folder
