# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the configuration of a model answers where config.json is silent."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret.values import MISSING, Unknown
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.known_model import build, config_attribute


class Reads:
    def read(self, names):
        pass


def ask(raw, name, part=None):
    config = build(raw)
    return config_attribute(Reads(), config.cells[part] if part else config, name)


LLAMA = {"model_type": "llama", "num_attention_heads": 16, "hidden_size": 1024}


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        (LLAMA, "head_dim", 64),
        (LLAMA, "num_key_value_heads", 16),
        (LLAMA, "v_head_dim", MISSING),
        ({**LLAMA, "head_dim": 99}, "head_dim", 99),
        ({"model_type": "gemma2"}, "v_head_dim", MISSING),
        ({"model_type": "kimi_k2"}, "kv_lora_rank", 512),
        ({"model_type": "kimi_k2", "qk_rope_head_dim": 32}, "head_dim", 32),
    ],
)
def test_the_class_of_a_type_answers_what_config_json_leaves_out(raw, name, expected):
    assert ask(raw, name) == expected


def test_a_nested_part_has_the_class_its_parent_gives_it():
    raw = {"model_type": "qwen2_5_vl", "vision_config": {"depth": 2}}
    assert ask(raw, "num_hidden_layers", "vision_config") is MISSING
    assert isinstance(ask(raw, "num_hidden_layers"), Unknown)


def test_of_a_type_nobody_knows_nothing_is_said():
    open_value = ask({"model_type": "brand_new"}, "head_dim")
    assert isinstance(open_value, Unknown)
    assert open_value.needs == {"model.head_dim"}
