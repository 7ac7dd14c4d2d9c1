# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the engine's own counters beside the load, as often as it does not cost the engine: what it says about its window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import engine
from .client import Client
from .engine import Series
from .folded import Folded, Over

PERIOD_S = 0.2
# An engine that takes long to answer is asked less often: waiting for answers takes a thirtieth of the time at most.
PAUSE_PER_WORK = 30
MOST_STILL = 64
# Names as SGLang 0.5.23 spells them (recorded from the real engine, and read in srt/observability/metrics_collector.py).
GAUGES = {
    "sglang:num_running_reqs": "running_reqs",
    "sglang:num_queue_reqs": "queued_reqs",
    "sglang:gen_throughput": "generated_tokens_per_s",
    "sglang:token_usage": "kv_used_ratio",
    "sglang:num_retracted_reqs": "retracted_reqs",
}
COUNTERS = {
    "sglang:num_retracted_requests_total": "retracted_total",
    "sglang:prompt_tokens_total": "prompt_tokens",
    "sglang:cached_tokens_total": "cached_tokens",
    "sglang:generation_tokens_total": "generated_tokens",
}
HISTOGRAMS = {
    "sglang:queue_time_seconds": "queue",
    "sglang:time_to_first_token_seconds": "ttft",
    "sglang:inter_token_latency_seconds": "itl",
    "sglang:e2e_request_latency_seconds": "e2e",
}
STAGE_SECONDS = "sglang:scheduler_stage_seconds_total"
# What the scheduler itself does between passes. Waiting for a neighbour counts as "other" in its loop (srt/managers/
# scheduler_pp_mixin.py, event_loop_pp), so that category is left out.
HOST_WORK = frozenset({"process_batch_result", "get_next_batch_to_run", "process_input_requests", "process_queue"})
PASSES = "sglang:cuda_graph_passes_total"
WANTED = (*GAUGES, *COUNTERS, *HISTOGRAMS, STAGE_SECONDS, PASSES)


class EngineWatch:
    """``run`` reads until it is cancelled; ``write`` gets one line {"ns", "engine"} per reading."""

    def __init__(self, clock_ns: Callable[[], int], write: Callable[[Mapping[str, Any]], None]) -> None:
        self._clock_ns, self._write = clock_ns, write
        self._folded = Folded()
        self._grew: tuple[float, int] | None = None
        self.latest: dict[str, float] = {}
        self.still: list[tuple[int, int]] = []
        """Spans [ns] in which requests were in the engine and no pass of it ended, the longest ones."""

    async def run(self, client: Client) -> None:
        while True:
            began = self._clock_ns()
            self.take(began, await engine.read_metrics(client, only=WANTED))
            spent = (self._clock_ns() - began) / 1e9
            await asyncio.sleep(max(PERIOD_S - spent, PAUSE_PER_WORK * spent))

    def take(self, ns: int, metrics: Mapping[str, Sequence[Series]]) -> None:
        """Keep one reading; nothing read leaves no trace."""
        values = engine_numbers(metrics)
        if values:
            self.latest = values
            self._folded.add(ns, values)
            self._standing(ns, values)
            self._write({"ns": ns, "engine": {name: round(value, 6) for name, value in values.items()}})

    def _standing(self, ns: int, values: Mapping[str, float]) -> None:
        passes = [value for name, value in values.items() if name.endswith("_passes")]
        if not passes:
            return
        waiting = values.get("running_reqs", 1.0) + values.get("queued_reqs", 0.0) > 0
        if self._grew is None or sum(passes) != self._grew[0] or not waiting:
            self._grew = sum(passes), ns
        elif self.still and self.still[-1][0] == self._grew[1]:
            self.still[-1] = self._grew[1], ns
        else:
            self.still.append((self._grew[1], ns))
            if len(self.still) > MOST_STILL:
                self.still.remove(min(self.still[:-1], key=lambda span: span[1] - span[0]))

    def over(self, windows: Sequence[tuple[int, int]]) -> Over:
        return self._folded.over(windows)


def engine_numbers(metrics: Mapping[str, Sequence[Series]]) -> dict[str, float]:
    """Return one reading as numbers; what the engine does not count is left out.

    Every stage of a pipeline reports the gauges: the first one speaks, and of several replicas the largest. Times of
    schedulers are kept by stage.
    """
    found: dict[str, float] = {}
    for source, name in GAUGES.items():
        value = engine.gauge(metrics, source)
        if value is not None:
            found[name] = value
    for source, name in COUNTERS.items():
        if source in metrics:
            found[name] = _first_stage(metrics[source])
    for source, name in HISTOGRAMS.items():
        if f"{source}_count" in metrics and f"{source}_sum" in metrics:
            found[f"{name}_s"] = _first_stage(metrics[f"{source}_sum"])
            found[f"{name}_n"] = _first_stage(metrics[f"{source}_count"])
    for labels, seconds in metrics.get(STAGE_SECONDS, ()):
        kind, stage = labels.get("category"), labels.get("pp_rank", "0")
        if labels.get("tp_rank", "0") == "0" and (kind == "run_batch" or kind in HOST_WORK):
            name = f"{'forward' if kind == 'run_batch' else 'host'}_s.{stage}"
            found[name] = found.get(name, 0.0) + seconds
    passes = engine.graph_passes({}, metrics)
    for phase, counts in (passes or {}).items():
        found |= {f"{phase}_{kind}_passes": float(count) for kind, count in counts.items()}
    return found


def by_stage(seen: Over, name: str) -> list[float] | None:
    """Return the growth of a counter of every stage, index = pp_rank; None unless each from 0 on was read."""
    ranks = sorted(int(key.rpartition(".")[2]) for key in seen.stats if key.startswith(f"{name}."))
    gains = [seen.gain(f"{name}.{rank}") for rank in ranks]
    known = [gain for gain in gains if gain is not None]
    return known if ranks and ranks == list(range(len(ranks))) and len(known) == len(ranks) else None


def _first_stage(series: Sequence[Series]) -> float:
    return sum(value for labels, value in series if labels.get("pp_rank", "0") == "0" and labels.get("tp_rank", "0") == "0")
