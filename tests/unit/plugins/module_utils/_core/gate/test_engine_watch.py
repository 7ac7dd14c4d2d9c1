# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The engine's counters as numbers: each stage once, what it does not count absent."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.engine import parse_metrics
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.engine_watch import (
    WANTED,
    EngineWatch,
    by_stage,
    engine_numbers,
)

TEXT = """
# HELP sglang:num_running_reqs x
sglang:num_running_reqs{{pp_rank="0"}} 8
sglang:num_running_reqs{{pp_rank="1"}} 8
sglang:e2e_request_latency_seconds_bucket{{le="+Inf"}} 4
sglang:e2e_request_latency_seconds_sum{{is_streaming="true"}} {0}
sglang:e2e_request_latency_seconds_count{{is_streaming="true"}} 4
sglang:queue_time_seconds_sum{{pp_rank="0"}} 1
sglang:queue_time_seconds_sum{{pp_rank="1"}} 1
sglang:queue_time_seconds_count{{pp_rank="0"}} 2
sglang:queue_time_seconds_count{{pp_rank="1"}} 2
sglang:cuda_graph_passes_total{{mode="decode_none",pp_rank="0"}} {0}
sglang:scheduler_stage_seconds_total{{category="run_batch",forward_overlap="none",pp_rank="0"}} 3
sglang:scheduler_stage_seconds_total{{category="run_batch",forward_overlap="full",pp_rank="0"}} {0}
sglang:scheduler_stage_seconds_total{{category="process_batch_result",forward_overlap="none",pp_rank="0"}} {0}
sglang:scheduler_stage_seconds_total{{category="other",forward_overlap="none",pp_rank="0"}} 99
sglang:scheduler_stage_seconds_total{{category="run_batch",forward_overlap="none",pp_rank="1"}} 5
sglang:unheard_of_total 5
"""


def test_ranks_are_not_added_up_and_stages_are_kept_apart():
    found = engine_numbers(parse_metrics(TEXT.format(10), WANTED))
    assert found == {
        "running_reqs": 8,
        "e2e_s": 10,
        "e2e_n": 4,
        "queue_s": 1,
        "queue_n": 2,
        "decode_graph_passes": 0,
        "decode_eager_passes": 10,
        "prefill_graph_passes": 0,
        "prefill_eager_passes": 0,
        "forward_s.0": 13,
        "host_s.0": 10,
        "forward_s.1": 5,
    }
    assert engine_numbers({}) == {}


def test_growth_over_a_window_and_lines_that_name_only_what_was_read():
    written: list = []
    watch = EngineWatch(lambda: 0, written.append)
    for second in range(5):
        watch.take(second * 10**9, parse_metrics(TEXT.format(10 + second), WANTED))
    watch.take(6 * 10**9, {})
    assert len(written) == 5 and written[0]["engine"]["running_reqs"] == 8
    seen = watch.over([(10**9, 4 * 10**9)])
    assert (seen.gain("e2e_s"), seen.mean("running_reqs"), seen.gain("retracted_total")) == (3, 8, None)
    assert by_stage(seen, "forward_s") == pytest.approx([3, 0])
    assert by_stage(seen, "idle_s") is None
