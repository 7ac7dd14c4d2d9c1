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
