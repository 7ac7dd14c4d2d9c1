# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate loads the fake engine, which answers in the recorded shapes of the real one, at each of its endpoints."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate

KIMI = ("--pp-size", "8", "--served-model-name", "kimi", "--enable-metrics", "--reasoning-parser", "kimi_k2")
QUICK = {"input_tokens": 64, "output_tokens": 32, "min_seconds_per_point": 0.5, "max_seconds_per_point": 20, "stall_timeout_s": 8}


def no_cards():
    raise NoNvmlError("no NVML in this test")


@pytest.mark.parametrize(
    ("endpoint", "flags"),
    [("completions", ()), ("chat", ()), ("generate", ()), ("generate", ("--incremental-streaming-output",))],
)
def test_each_endpoint_carries_load_with_exact_lengths(endpoint, flags, start, tmp_path):
    running = start(*KIMI, *flags, timescale=20)
    points = [{"concurrency": 4, "min_output_tokens_per_s": 1}, {"rate": 8, "arrivals": "constant", "min_goodput_ratio": 0.5}]
    plan = GatePlan.from_dict({**QUICK, "endpoint": endpoint, "points": points})
    result = run_gate(running.url, plan, tmp_path / "out", open_nvml=no_cards)
    assert result["verdict"] == "pass", result["reasons"]
    for point in result["points"]:
        assert (point["input_tokens"]["mean"], point["output_tokens"]["mean"]) == (64, 32)
        assert point["cached_tokens_ratio"] < 0.01
        assert point["requests"]["failed"] == 0


@pytest.mark.parametrize("name", ["prompts.txt", None])
def test_short_prompts_are_fresh_although_the_cache_keeps_single_tokens_r77(name, start, tmp_path):
    """The real engine's pages hold one token (recorded), so it finds whatever two prompts begin with."""
    running = start(*KIMI, timescale=50)
    (tmp_path / "prompts.txt").write_text("".join(f"tell me of the {number} rivers\n" for number in range(300)))
    told = {
        "input_tokens": 32,
        "output_tokens": 4,
        "points": [{"concurrency": 8, "min_output_tokens_per_s": 1}],
        "min_seconds_per_point": 3,
    }
    told |= {"prompts": {"file": str(tmp_path / name)}} if name else {}
    result = run_gate(running.url, GatePlan.from_dict({**QUICK, **told}), tmp_path / "out", open_nvml=no_cards)
    assert result["verdict"] == "pass", result["reasons"]
    assert name or result["points"][0]["cached_tokens_ratio"] > 0
    assert "GATE-CACHED" not in [cause["code"] for cause in result["diagnosis"]]
