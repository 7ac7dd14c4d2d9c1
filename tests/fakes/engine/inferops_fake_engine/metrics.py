"""/metrics in the recorded names and labels; a name that was never recorded is not spoken."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping

from .state import Server

Sample = tuple[str, Mapping[str, str], float]


def _samples(server: Server) -> Iterator[Sample]:
    engine = server.engine
    assert engine is not None
    pipeline = engine.pipeline
    graphs = server.resolved.decode_graphs
    base = {"engine_type": "unified", "model_name": server.served_name}
    books, pool = engine.books, server.kv_tokens
    # The clock takes requests back after the pass that went over the pool; the engine never goes over it.
    used = float(min(pipeline.kv_used, pool))
    wall_s = 1000.0 * server.timescale  # simulated milliseconds in a second of the wall clock
    lived = engine.now_ms()
    retracted = books.newly_retracted()
    last_used_graph = graphs and pipeline.graph_passes > 0
    for rank in range(server.pp_size):
        labels = base | {"moe_ep_rank": "0", "pp_rank": str(rank), "tp_rank": "0"}
        yield "sglang:num_running_reqs", labels, pipeline.running
        yield "sglang:num_queue_reqs", labels, pipeline.queued
        yield "sglang:gen_throughput", labels, engine.tokens_per_s()
        yield "sglang:token_usage", labels, used / pool
        yield "sglang:num_used_tokens", labels, used
        yield "sglang:cache_hit_rate", labels, books.cached_tokens / books.prompt_tokens if books.prompt_tokens else 0.0
        yield "sglang:num_retracted_reqs", labels | {"pid": "1"}, retracted
        yield from _histogram("sglang:queue_time_seconds", labels, pipeline.queued_ms / wall_s, pipeline.admitted)
        forward, host = pipeline.forward_ms[rank], pipeline.host_ms[rank]
        for category, spent in (("run_batch", forward), ("process_batch_result", host), ("idle", lived - forward - host)):
            kind = {"category": category, "forward_overlap": "none"}
            yield "sglang:scheduler_stage_seconds_total", labels | kind, max(0.0, spent) / wall_s
        yield "sglang:is_cuda_graph", labels, float(last_used_graph)
        yield "sglang:max_total_num_tokens", labels, pool
        yield "sglang:context_len", labels, server.context_length
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "decode_cuda_graph"}, pipeline.graph_passes
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "decode_none"}, pipeline.eager_passes
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "prefill_none"}, pipeline.prefill_passes
        yield "sglang:graph_memory_usage_gb", labels | {"phase": "decode"}, 1.2 if graphs else 0.0
    yield "sglang:startup_cuda_graph_time_seconds", base | {"phase": "decode"}, 4.0 if graphs else 0.0
    yield "sglang:startup_cuda_graph_time_seconds", base | {"phase": "prefill"}, 0.0
    streamed = base | {"is_streaming": "true"}
    yield "sglang:prompt_tokens_total", streamed, books.prompt_tokens
    yield "sglang:generation_tokens_total", streamed, books.output_tokens
    yield "sglang:num_requests_total", streamed, books.finished
    yield "sglang:cached_tokens_total", base | {"cache_source": "device"}, books.cached_tokens
    for name, seen, labels in (
        ("time_to_first_token", books.ttft, streamed),
        ("inter_token_latency", books.itl, base),
        ("e2e_request_latency", books.e2e, streamed),
    ):
        yield from _histogram(f"sglang:{name}_seconds", labels, seen.total_ms / wall_s, seen.count)
    yield "sglang:process_cpu_seconds_total", {"component": "tokenizer"}, time.process_time()
    for (method, endpoint, status), count in sorted(server.http_requests.items()):
        yield "sglang:http_responses_total", {"endpoint": endpoint, "method": method, "status_code": str(status)}, count


def _histogram(name: str, labels: Mapping[str, str], total: float, count: int) -> Iterator[Sample]:
    """A histogram with its last bucket alone: nobody here reads the others."""
    yield f"{name}_bucket", labels | {"le": "+Inf"}, count
    yield f"{name}_sum", labels, total
    yield f"{name}_count", labels, count


def render(server: Server) -> str:
    recorded = {row["name"]: row["kind"] for row in server.recording.metrics}
    by_name: dict[str, list[str]] = {}
    for name, labels, value in _samples(server):
        if name not in recorded:
            raise KeyError(f"{name} was not recorded from SGLang {server.recording.version}")
        inside = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
        by_name.setdefault(name, []).append(f"{name}{{{inside}}} {float(value)}")
    lines: list[str] = []
    told: set[str] = set()
    for name, samples in by_name.items():
        base = re.sub(r"_(bucket|sum|count)$", "", name) if recorded[name] == "histogram" else name
        if base not in told:
            told.add(base)
            lines += [f"# HELP {base} Simulated.", f"# TYPE {base} {recorded[name]}"]
        lines += samples
    return "\n".join(lines) + "\n"
