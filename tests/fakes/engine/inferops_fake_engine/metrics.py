"""/metrics in the recorded names and labels; a name that was never recorded is not spoken."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from .state import KV_TOKENS, Server

Sample = tuple[str, Mapping[str, str], float]


def _samples(server: Server) -> Iterator[Sample]:
    engine = server.engine
    assert engine is not None
    pipeline = engine.pipeline
    graphs = server.resolved.decode_graphs
    base = {"engine_type": "unified", "model_name": server.served_name}
    used = pipeline.running * 640.0
    last_used_graph = graphs and pipeline.graph_passes > 0
    for rank in range(server.pp_size):
        labels = base | {"moe_ep_rank": "0", "pp_rank": str(rank), "tp_rank": "0"}
        yield "sglang:num_running_reqs", labels, pipeline.running
        yield "sglang:num_queue_reqs", labels, pipeline.queued
        yield "sglang:gen_throughput", labels, engine.tokens_per_s()
        yield "sglang:token_usage", labels, used / KV_TOKENS
        yield "sglang:num_used_tokens", labels, used
        yield "sglang:cache_hit_rate", labels, engine.cached_tokens / engine.prompt_tokens if engine.prompt_tokens else 0.0
        yield "sglang:is_cuda_graph", labels, float(last_used_graph)
        yield "sglang:max_total_num_tokens", labels, KV_TOKENS
        yield "sglang:context_len", labels, server.context_length
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "decode_cuda_graph"}, pipeline.graph_passes
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "decode_none"}, pipeline.eager_passes
        yield "sglang:cuda_graph_passes_total", labels | {"mode": "prefill_none"}, pipeline.prefill_passes
        yield "sglang:graph_memory_usage_gb", labels | {"phase": "decode"}, 1.2 if graphs else 0.0
    yield "sglang:startup_cuda_graph_time_seconds", base | {"phase": "decode"}, 4.0 if graphs else 0.0
    yield "sglang:startup_cuda_graph_time_seconds", base | {"phase": "prefill"}, 0.0
    streamed = base | {"is_streaming": "true"}
    yield "sglang:prompt_tokens_total", streamed, engine.prompt_tokens
    yield "sglang:generation_tokens_total", streamed, engine.output_tokens
    yield "sglang:num_requests_total", streamed, engine.finished
    yield "sglang:cached_tokens_total", base | {"cache_source": "device"}, engine.cached_tokens
    yield "sglang:process_cpu_seconds_total", {"component": "tokenizer"}, time.process_time()
    for (method, endpoint, status), count in sorted(server.http_requests.items()):
        yield "sglang:http_responses_total", {"endpoint": endpoint, "method": method, "status_code": str(status)}, count


def render(server: Server) -> str:
    recorded = {row["name"]: row["kind"] for row in server.recording.metrics}
    by_name: dict[str, list[str]] = {}
    for name, labels, value in _samples(server):
        if name not in recorded:
            raise KeyError(f"{name} was not recorded from SGLang {server.recording.version}")
        inside = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
        by_name.setdefault(name, []).append(f"{name}{{{inside}}} {float(value)}")
    lines = []
    for name, samples in by_name.items():
        lines += [f"# HELP {name} Simulated.", f"# TYPE {name} {recorded[name]}", *samples]
    return "\n".join(lines) + "\n"
