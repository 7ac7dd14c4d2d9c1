# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One point of a plan: put the load on, watch engine and client beside it, and judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..units import NS_PER_S, ns_to_ms, ns_to_s
from . import engine
from .arrivals import OpenLoop, gaps_s
from .beside import client_e2e_ms, engine_facts
from .bound import PointBound
from .client import Client
from .client_processes import client_processes
from .engine_watch import EngineWatch
from .folder import ResultFolder
from .host import own_cpu_s
from .load import ClosedLoop, PointLoad, Send
from .load_words import load_words
from .looks import Looks
from .metrics import in_flight_mean, percentiles, point_figures, sample
from .plan import Point
from .stream import Trace
from .throughput import throughput
from .validity import (
    cache_limit,
    check_bound,
    check_cache,
    check_client,
    check_counters,
    check_load,
    check_passes,
    check_schedule,
    falls_behind,
    merged,
    tokens_of,
)
from .verdict import Yardsticks, decided, judge_limits, point_verdict
from .wire import Wire
from .worker import Job
from .workers import LOST, LoadWorkers, WorkerLostError

PROGRESS_S = 2.0
GENERATED = "sglang:generation_tokens_total"
COUNTER_READS, COUNTER_PAUSE_S = 5, 0.3
# Warm-up answers are shorter: they are for compiled kernels, caches and connections, at the concurrency of the point.
WARM_UP_SHARE = 4
WARM_UP_TOKENS = 8
# Of latency samples per look in the middle of a point; the final figures rest on all.
MOST_SAMPLES = 20_000
# Ends of a point after which the next one would end the same way.
HOPELESS = ("too many failures", "warm-up failed", LOST)
Report = Callable[[Mapping[str, Any]], None]


@dataclass
class PointRun:
    """Runs one point. What it has so far can be turned into a result entry at any moment, also after a cut."""

    index: int
    count: int
    point: Point
    wire: Wire
    against: Yardsticks
    folder: ResultFolder
    report: Report
    start_ns: int = 0
    """Zero of the client's clock in monotonic ns."""
    load: PointLoad = field(init=False)
    engine_watch: EngineWatch = field(init=False)
    before: dict[str, list[engine.Series]] = field(default_factory=dict)
    after: dict[str, list[engine.Series]] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    """Share of a processor by process of the client."""
    workers: LoadWorkers | None = None
    looks: Looks = field(default_factory=Looks)
    _reported: float = 0.0

    @property
    def windows(self) -> list[tuple[int, int]]:
        """The measured window of this point, as far as it has come."""
        load = self.load
        return [] if load.window_start_ns is None or load.window_end_ns is None else [(load.window_start_ns, load.window_end_ns)]

    async def run(self, client: Client) -> None:
        """Measure; leaves its traces in ``load`` whatever happens."""
        plan = self.against.plan
        total_s = max(plan.max_seconds_per_point, plan.stall_timeout_s)
        warm_up_tokens = max(plan.output_tokens // WARM_UP_SHARE, min(WARM_UP_TOKENS, plan.output_tokens))

        async def send(number: int, warm_up: bool, trace: Trace) -> Trace:
            # Arrivals warm up at full length: only then is the server as full as the rate makes it.
            short = warm_up and self.point.rate is None
            if self.workers is not None:
                await self.workers.send(number, short, trace)
            else:
                body = self.wire.body(self.index, number, output_tokens=warm_up_tokens if short else None)
                await client.generate(self.wire.path, body, stall_s=plan.stall_timeout_s, total_s=total_s, trace=trace)
            self._keep(trace, number, "warmup" if warm_up else self._phase(trace))
            return trace

        self.engine_watch = EngineWatch(client.clock_ns, self.folder.sample)
        loop = self._loop(send, client)
        self.load = loop.load
        if (count := client_processes(plan, self.point)) > 1:
            asked = (self.wire, self.index, warm_up_tokens, plan.stall_timeout_s, total_s)
            job = Job(client.base_url, client.api_key, self.start_ns, *asked)
            self.workers = LoadWorkers(count, job, self.load, clock_ns=client.clock_ns)
        self.before = await engine.read_metrics(client)
        client.later(self.engine_watch.run(client))
        wall, cpu = time.monotonic(), time.process_time()
        try:
            if self.workers is not None:
                await self.workers.start()
                wall, cpu = time.monotonic(), time.process_time()
            await loop.run(lambda load: self._enough(load, client), lambda load: self._tick(load, client))
        except WorkerLostError:
            self.load.stop = LOST
        finally:
            elapsed = time.monotonic() - wall
            if elapsed > 0:
                self.busy["the load client itself"] = (time.process_time() - cpu) / elapsed
            cut = client.cut
            if self.workers is not None:
                cut = self.workers.cut
                await self.workers.close()
                self.busy |= self.workers.busy(elapsed)
            if self.point.rate is None:
                self.load.drained = list(cut)
            for trace in {*cut, *self.load.drained}:
                self._keep(trace, -1, "drain")
        self.after = await self._settled_metrics(client)

    def _loop(self, send: Send, client: Client) -> ClosedLoop | OpenLoop:
        point, seconds = self.point, self.against.plan.max_seconds_per_point
        if point.rate is None or point.arrivals is None:
            return ClosedLoop(send, point.concurrency, clock_ns=client.clock_ns, max_seconds=seconds)
        gaps = gaps_s(point.rate, point.arrivals, f"{self.against.plan.seed}/{self.index}")
        load = PointLoad(point.concurrency, [[]], rate=point.rate, arrivals=point.arrivals)
        return OpenLoop(send, gaps, load, clock_ns=client.clock_ns, max_seconds=seconds)

    def _phase(self, trace: Trace) -> str:
        end = self.load.window_end_ns
        return "window" if self.point.rate is None or end is None or trace.planned_ns < end else "after"

    async def _settled_metrics(self, client: Client) -> dict[str, list[engine.Series]]:
        """Read the counters once they hold what we were given: the engine books a request a moment after its last token."""
        for dummy in range(COUNTER_READS):
            metrics = await engine.read_metrics(client)
            counted = engine.counter_gain(self.before, metrics, GENERATED)
            if counted is None or counted >= tokens_of(self.load):
                break
            await asyncio.sleep(COUNTER_PAUSE_S)
        return metrics

    def entry(
        self,
        *,
        gpus: list[dict[str, Any]],
        stream_interval: int | None,
        doubts: list[str],
        beside: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return this point as it stands in the result; ``beside``: what host and stalls were seen to be."""
        plan, load, bound = self.against.plan, self.load, self.against.bound
        speed_limit = None if bound is None else bound.tokens_per_s
        figures = point_figures(load, self.point.limits, plan.confidence, output_tokens=plan.output_tokens)
        passes = engine.graph_passes(self.before, self.after)
        told = figures["cached_tokens_ratio"], engine.cached_share(self.before, self.after)
        # Where both say it, the larger one: the engine's also holds what others ask, and the load is meant to be alone.
        figures["cached_tokens_ratio"] = max((share for share in told if share is not None), default=None)
        judged = [] if load.window_start_ns is None else judge_limits(self.point, load, self.against)
        low = None if figures["ci"] is None else figures["ci"][0]
        may_be_cached = cache_limit(plan, self.wire.cacheable_tokens, figures["input_tokens"]["mean"])
        rate = figures["output_tokens_per_s"]
        validity = merged(
            [check_load(load, plan, stream_interval=stream_interval), check_passes(passes, plan.require)],
            [
                *check_cache(figures["cached_tokens_ratio"], may_be_cached, fresh=plan.prompts is None or plan.prompts.fresh),
                *check_counters(engine.counter_gain(self.before, self.after, GENERATED), load, plan),
                *check_bound(low, None if bound is None else bound.ceiling_tokens_per_s),
                *([] if self.workers is None else self.workers.doubts()),
                *check_client(self.busy, load, in_flight_mean(load)),
                *check_schedule(load),
                *doubts,
            ],
        )
        behind = falls_behind(load)
        if behind is not None and self.point.limits:
            validity.wrong.append(behind)
        if load.window_start_ns is None and not validity.wrong and load.stop != LOST:
            validity.doubtful.append(f"the warm-up did not end within {plan.max_seconds_per_point:g} s")
        verdict, reasons = point_verdict(judged, validity)
        return {
            **figures,
            "cached_tokens_limit_ratio": round(may_be_cached, 4),
            "bound_tokens_per_s": None if speed_limit is None else round(speed_limit, 2),
            "bound_ratio": None if not speed_limit or rate is None else round(rate / speed_limit, 4),
            "fillings": None if bound is None else bound.as_dict(),
            "headroom": _room(bound, rate, verdict) if load.rate is None else behind,
            "window_ns": None if load.window_start_ns is None else [load.window_start_ns, load.window_end_ns],
            "ended_by": load.stop,
            "limits": [limit.as_dict() for limit in judged],
            "gpus": gpus,
            "engine": {
                "graph_passes": passes,
                "num_running_reqs": self.engine_watch.latest.get("running_reqs"),
                "gen_throughput": self.engine_watch.latest.get("generated_tokens_per_s"),
                **engine_facts(self.engine_watch.over(self.windows)),
            },
            **(beside or {}),
            "client": {
                "processes": 1 if self.workers is None else self.workers.count,
                "cpu_ratio": round(max(self.busy.values()), 4) if self.busy else None,
                "e2e_mean_ms": client_e2e_ms(load),
                **({} if load.rate is None else {"late_ms": percentiles(sorted(map(ns_to_ms, load.late_ns)))}),
            },
            "verdict": verdict,
            "reasons": reasons,
        }

    def _enough(self, load: PointLoad, client: Client) -> bool:
        now = client.clock_ns()
        elapsed = ns_to_s(now - (load.window_start_ns or 0))
        if elapsed < self.against.plan.min_seconds_per_point or not self.looks.due(load.rounds, now):
            return False
        judged = judge_limits(self.point, load, self.against, most_samples=MOST_SAMPLES)
        enough = decided(judged, load, self.against.plan)
        self.looks.took(now, client.clock_ns())
        return enough

    def _tick(self, load: PointLoad, client: Client) -> None:
        now = time.monotonic()
        if now - self._reported < PROGRESS_S:
            return
        self._reported = now
        self.report(progress_line(self.index, self.count, load, self.against, client.clock_ns()))

    def _keep(self, trace: Trace, number: int, phase: str) -> None:
        self.folder.sample(sample(trace, point=self.index, concurrency=self.point.concurrency, request=number, phase=phase))


def client_cpu_s(run: PointRun | None) -> dict[str, float]:
    """Return the processor time of each process of the client so far [s]; ``run`` is the point that it loads, if any."""
    return own_cpu_s() if run is None or run.workers is None else {**own_cpu_s(), **run.workers.look()}


def _room(bound: PointBound | None, rate: float | None, verdict: str) -> str | None:
    return None if bound is None else bound.headroom(rate, verdict)


def progress_line(index: int, count: int, load: PointLoad, against: Yardsticks, now_ns: int) -> dict[str, Any]:
    """Return the progress of one point as numbers and as one line for people."""
    facts: dict[str, Any] = {"point": index, "points": count, "concurrency": load.concurrency, "rate": load.rate}
    head = f"gate  {index + 1}/{count}  {load_words(facts)}"
    if load.window_start_ns is None:
        sent = f"{len(load.warm_up)} of {2 * load.concurrency} requests"
        if load.rate is not None:
            sent = f"{len(load.warm_up)} requests answered, {len(load.going)} in flight"
        return {**facts, "state": "warm-up", "text": f"{head}   warming up, {sent}"}
    if load.window_end_ns is not None and load.rate is not None:
        text = f"{head}   window over, awaiting the last of its requests, {len(load.unended)} to go"
        return {**facts, "state": "window", "text": text}
    elapsed = (now_ns - load.window_start_ns) / NS_PER_S
    left = max(against.plan.max_seconds_per_point - elapsed, 0)
    rate = throughput(load, against.plan.confidence, now_ns=now_ns).value
    shown = "no tokens yet" if rate is None else f"{rate:.1f} tok/s"
    text = f"{head}   {shown}   in window {elapsed:.0f} s, up to {left:.0f} s left"
    numbers = {
        "output_tokens_per_s": None if rate is None else round(rate, 2),
        "window_s": round(elapsed, 1),
        "left_s": round(left, 1),
    }
    return {**facts, "state": "window", **numbers, "text": text}


def point_line(index: int, count: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what progress says when a point has ended."""
    rate = entry["output_tokens_per_s"]
    shown = "nothing measured" if rate is None else f"{rate:.1f} tok/s"
    text = f"gate  {index + 1}/{count}  {load_words(entry)}   {shown}   {entry['headroom'] or entry['verdict']}"
    return {"state": "point", "point": index, "output_tokens_per_s": rate, "verdict": entry["verdict"], "text": text}
