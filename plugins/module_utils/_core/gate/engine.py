# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the engine says about itself: resolved arguments cut to an allow-list, and its own counters around a point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .client import Client

# /server_info also carries API keys and the launch command: only these names are ever kept (read on 0.5.12 and 0.5.23).
RESOLVED = (
    "attention_backend",
    "chunked_prefill_size",
    "context_length",
    "cuda_graph_bs",
    "cuda_graph_config",
    "cuda_graph_max_bs",
    "device",
    "disable_cuda_graph",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "dp_size",
    "dtype",
    "enable_cache_report",
    "enable_metrics",
    "incremental_streaming_output",
    "kv_cache_dtype",
    "max_running_requests",
    "max_total_tokens",
    "mem_fraction_static",
    "moe_runner_backend",
    "page_size",
    "pp_async_batch_depth",
    "pp_max_micro_batch_size",
    "pp_size",
    "quantization",
    "served_model_name",
    "simulated",
    "speculative_algorithm",
    "stream_interval",
    "tool_call_parser",
    "tp_size",
)
_SERIES = re.compile(r"(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+\d+)?")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
Series = tuple[dict[str, str], float]
GRAPH_MODES = {"cuda_graph": "graph", "none": "eager"}


def parse_metrics(text: str, only: tuple[str, ...] = ("",)) -> dict[str, list[Series]]:
    """Return name -> [(labels, value)] of a Prometheus exposition; lines that are none are skipped.

    ``only``: beginnings of the names that are wanted; the others, and the buckets of histograms, cost nothing then.

    >>> parse_metrics('a_total{mode="x"} 2.0')
    {'a_total': [({'mode': 'x'}, 2.0)]}
    """
    found: dict[str, list[Series]] = {}
    for line in text.splitlines():
        wanted = line.startswith(only) and not (only != ("",) and "_bucket{" in line)
        match = _SERIES.fullmatch(line.strip()) if wanted and not line.startswith("#") else None
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        found.setdefault(match["name"], []).append((dict(_LABEL.findall(match["labels"] or "")), value))
    return found


def graph_passes(
    before: Mapping[str, Sequence[Series]], after: Mapping[str, Sequence[Series]]
) -> dict[str, dict[str, int]] | None:
    """Return {"decode": {"graph": n, "eager": n}, "prefill": {…}} between two readings, or None when it is not counted.

    Every rank of a pipeline may count the same pass, so ranks are never added up: the rank with the most eager passes
    speaks, for it holds back the others. Counters that went back are another process's: not counted.
    Counter and labels: srt/observability/metrics_collector.py, 0.5.10 to 0.5.23.
    """
    name = "sglang:cuda_graph_passes_total"
    if name not in after:
        return None
    start = {_key(labels): value for labels, value in before.get(name, [])}
    ranks: dict[tuple[tuple[str, str], ...], dict[str, dict[str, int]]] = {}
    for labels, value in after[name]:
        phase, dummy, kind = labels.get("mode", "").partition("_")
        if phase not in ("decode", "prefill") or kind not in GRAPH_MODES:
            continue
        rank = _key({key: text for key, text in labels.items() if key != "mode"})
        counts = ranks.setdefault(rank, {phase_: {"graph": 0, "eager": 0} for phase_ in ("decode", "prefill")})
        counts[phase][GRAPH_MODES[kind]] += round(value - start.get(_key(labels), 0))
    if not ranks or any(count < 0 for rank in ranks.values() for counts in rank.values() for count in counts.values()):
        return None
    return {phase: max((rank[phase] for rank in ranks.values()), key=_eager_first) for phase in ("decode", "prefill")}


def cached_share(before: Mapping[str, list[Series]], after: Mapping[str, list[Series]]) -> float | None:
    """Return cached / all prompt tokens between two readings of the tokenizer's counters; None when they are not kept.

    The series for cached tokens appears with the first hit, so its absence beside a counted prompt is a real zero.
    """
    prompts = _total(after, "sglang:prompt_tokens_total") - _total(before, "sglang:prompt_tokens_total")
    if "sglang:prompt_tokens_total" not in after or prompts <= 0:
        return None
    return (_total(after, "sglang:cached_tokens_total") - _total(before, "sglang:cached_tokens_total")) / prompts


def counter_gain(before: Mapping[str, list[Series]], after: Mapping[str, list[Series]], name: str) -> float | None:
    """Return by how much a counter of the tokenizer grew, all its series together; None where it is not kept or was not read."""
    return None if not before or name not in after else _total(after, name) - _total(before, name)


def gauge(metrics: Mapping[str, Sequence[Series]], name: str) -> float | None:
    """Return a gauge of the first pipeline stage (all ranks report it), the largest where several replicas do."""
    values = [value for labels, value in metrics.get(name, []) if labels.get("pp_rank", "0") == "0"]
    return max(values) if values else None


def resolved_arguments(info: Any) -> dict[str, Any]:
    """Return the allow-listed part of /server_info."""
    return {name: info[name] for name in RESOLVED if name in info} if isinstance(info, Mapping) else {}


async def read_metrics(client: Client, only: tuple[str, ...] = ("",)) -> dict[str, list[Series]]:
    """Return the engine's metrics, those whose names begin as ``only`` says; nothing when it does not serve any just now."""
    try:
        status, text = await client.get("/metrics", timeout_s=5)
        # /metrics is a mounted application in SGLang: without the slash it may redirect.
        if status in (301, 307, 308):
            status, text = await client.get("/metrics/", timeout_s=5)
    except (OSError, TimeoutError):
        return {}
    return parse_metrics(text, only) if status == 200 else {}


async def read_engine(client: Client) -> dict[str, Any]:
    """Return {"version", "simulated", "resolved"}; the new and the old name of the call are tried."""
    for path in ("/server_info", "/get_server_info"):
        try:
            status, info = await client.get_json(path)
        except (OSError, TimeoutError):
            continue
        if status == 200 and isinstance(info, dict):
            version = info.get("version")
            known = version if isinstance(version, str) else None
            return {"version": known, "simulated": bool(info.get("simulated")), "resolved": resolved_arguments(info)}
    return {"version": None, "simulated": False, "resolved": {}}


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _eager_first(counts: Mapping[str, int]) -> tuple[int, int]:
    return counts["eager"], counts["graph"]


def _total(metrics: Mapping[str, list[Series]], name: str) -> float:
    return sum(value for dummy, value in metrics.get(name, []))
