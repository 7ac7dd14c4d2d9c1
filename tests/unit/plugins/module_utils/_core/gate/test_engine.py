# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The engine's own words: counters are never summed over ranks, arguments are cut to an allow-list."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import engine

PASSES = "sglang:cuda_graph_passes_total"


def exposition(*series):
    return engine.parse_metrics("".join(f"{name}{{{labels}}} {value}\n" for name, labels, value in series))


def test_pipeline_ranks_are_not_summed_and_the_worst_speaks():
    before = exposition((PASSES, 'pp_rank="0",mode="decode_cuda_graph"', 10))
    after = exposition(
        (PASSES, 'pp_rank="0",mode="decode_cuda_graph"', 110),
        (PASSES, 'pp_rank="0",mode="decode_none"', 0),
        (PASSES, 'pp_rank="1",mode="decode_cuda_graph"', 60),
        (PASSES, 'pp_rank="1",mode="decode_none"', 40),
        (PASSES, 'pp_rank="1",mode="prefill_none"', 7),
    )
    assert engine.graph_passes(before, after) == {"decode": {"graph": 60, "eager": 40}, "prefill": {"graph": 0, "eager": 7}}


def test_counters_that_went_back_are_not_counted_r104():
    """R104: another process answers than before, and the difference would be any share at all."""
    before = exposition((PASSES, 'mode="decode_cuda_graph"', 1000), (PASSES, 'mode="decode_none"', 0))
    after = exposition((PASSES, 'mode="decode_cuda_graph"', 10), (PASSES, 'mode="decode_none"', 500))
    assert engine.graph_passes(before, after) is None


def test_an_engine_that_counts_no_passes_is_unknown():
    assert engine.graph_passes({}, exposition(("up", "", 1))) is None


def test_cached_share_from_counters():
    before = exposition(("sglang:prompt_tokens_total", "", 100))
    after = exposition(("sglang:prompt_tokens_total", "", 300), ("sglang:cached_tokens_total", 'cache_source="device"', 50))
    assert engine.cached_share(before, after) == 0.25
    assert engine.cached_share(before, exposition(("sglang:prompt_tokens_total", "", 300))) == 0
    assert engine.cached_share({}, {}) is None


def test_gauges_come_from_the_first_stage():
    metrics = exposition(("sglang:gen_throughput", 'pp_rank="0"', 35.5), ("sglang:gen_throughput", 'pp_rank="7"', 36))
    assert engine.gauge(metrics, "sglang:gen_throughput") == 35.5
    assert engine.gauge(metrics, "absent") is None


def test_labels_with_escapes_and_lines_that_are_none():
    text = '# HELP x y\nx{a="q\\"},{",b="2"} 3 1700000000\nbroken{ 4\nx 1e3\n'
    assert engine.parse_metrics(text) == {"x": [({"a": 'q\\"},{', "b": "2"}, 3.0), ({}, 1000.0)]}


def test_resolved_arguments_are_an_allow_list():
    info = {"api_key": "k", "admin_api_key": "k", "launch_command": "--api-key k", "tp_size": 1, "anything_new": 1}
    assert engine.resolved_arguments(info) == {"tp_size": 1}
