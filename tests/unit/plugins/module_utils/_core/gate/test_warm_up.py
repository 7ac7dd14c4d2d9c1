# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The loads of a plan put on a server before clients are let in: each once, and no longer than that takes."""

from __future__ import annotations

import json

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.warm_up import warm_plan

from .paced_server import Pace, serving
from .test_run import no_cards


def test_each_load_runs_with_its_warm_up_and_ends_by_itself(tmp_path):
    plan = {"input_tokens": 16, "output_tokens": 20, "min_seconds_per_point": 60, "max_seconds_per_point": 120}
    plan["points"] = [{"concurrency": 1, "min_output_tokens_per_s": 1e9}, {"concurrency": 4, "max_ttft_p99_ms": 0.1}]
    with serving(Pace(ttft_s=0.005, itl_s=0.001, slow_warm_up=2)) as url:
        result = run_gate(url, GatePlan.from_dict(warm_plan(plan)), tmp_path, open_nvml=no_cards)
    assert [(point["concurrency"], point["requests"]["warm_up"]) for point in result["points"]] == [(1, 2), (4, 8)]
    assert all(point["window_s"] < 10 for point in result["points"])
    assert json.loads((tmp_path / "result.json").read_text())["finished"]
