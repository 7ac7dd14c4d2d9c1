# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a model takes on the cards and which parsers a release has for it, from files alone."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.described import parameters, parsers, stages


@pytest.fixture
def kimi(fixtures):
    return json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text())


def test_kimi_has_a_trillion_parameters_whatever_they_are_kept_in(kimi):
    """1.04 T published; the vision tower and all experts are among them."""
    assert 1.02e12 < parameters(kimi) < 1.05e12


def test_each_stage_has_its_bytes_and_its_cache(kimi):
    """576 elements of two bytes for each layer and token (MLA)."""
    found = stages(kimi, tp_size=1, pp_size=8, partition="", kv_cache_dtype="auto")
    assert [stage["layers"] for stage in found] == [7, 7, 7, 8, 8, 8, 8, 8]
    assert [stage["kv_bytes_per_token"] for stage in found] == [1152 * layers for layers in (7, 7, 7, 8, 8, 8, 8, 8)]
    assert 590e9 < sum(stage["weights_bytes"] for stage in found) < 605e9
    other = stages(kimi, tp_size=1, pp_size=8, partition="8,8,8,8,8,7,7,7", kv_cache_dtype="fp8_e4m3")
    assert other[0]["kv_bytes_per_token"] == 576 * 8
    with pytest.raises(InferopsError, match="does not fit"):
        stages(kimi, tp_size=1, pp_size=8, partition="1,2", kv_cache_dtype="auto")


def test_what_is_not_known_is_not_guessed():
    config = {"architectures": ["NobodyKnows"], "num_hidden_layers": 2}
    assert parameters(config) is None
    assert stages(config, tp_size=1, pp_size=1, partition="", kv_cache_dtype="auto") is None


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.9", "0.5.12", "0.5.23"])
def test_the_release_says_which_parsers_there_are(version, unpacked, kimi):
    found = parsers(unpacked(version) / "sglang", kimi)
    assert found["tool_call"]["alike"][0] == "kimi_k2"
    assert set(found["tool_call"]["known"]) > {"kimi_k2", "llama3", "qwen25"}
    assert set(found["reasoning"]["known"]) > {"kimi", "deepseek-r1", "qwen3"}


def test_a_folder_that_is_no_release_is_refused(tmp_path, kimi):
    with pytest.raises(InferopsError, match="no list of parsers"):
        parsers(tmp_path, kimi)
