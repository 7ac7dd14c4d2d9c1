# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One gate in virtual time: the fake engine's clock, its counters and cards, read by the gate's own code, minutes in a second.

What is simulated is the server, the link, and the client's processor. Everything from traces, counters and readings on is the
code that judges a real run: figures, summaries, diagnosis.
"""

from __future__ import annotations

import heapq
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins" / "module_utils"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fakes" / "engine"))
from _core.gate.beside import beside_facts
from _core.gate.context import GateContext
from _core.gate.diagnosis import diagnose
from _core.gate.engine_watch import EngineWatch
from _core.gate.folded import Folded
from _core.gate.gpu import Cards
from _core.gate.load import PointLoad
from _core.gate.measure import PointRun
from _core.gate.nvml import THROTTLE_BITS
from _core.gate.plan import GatePlan
from _core.gate.prompts import PromptMaker
from _core.gate.reasons import graph_passes_of
from _core.gate.stream import Trace
from _core.gate.verdict import Yardsticks
from _core.gate.wire import Wire
from inferops_fake_engine import gpus
from inferops_fake_engine.books import Books
from inferops_fake_engine.clock import FITTED, Faults, Parameters, Pipeline, TokenDone, build_stages
from inferops_fake_engine.metrics import _samples

ROOT = Path(__file__).resolve().parents[1]
MODEL = json.loads((ROOT / "tests" / "fixtures" / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8"))
LAYERS, STAGES, BANDWIDTH_GB_S = 61, 8, 1600.0
READ_EVERY_MS = 250.0
WARM_UP_ROUNDS, TURNAROUND_MS = 2, 2.0
MS = 1_000_000


@dataclass(frozen=True)
class Server:
    """A server with its faults, and the way to it. ``link_ms`` and ``client_ms`` are the time each token takes there."""

    model: type[Pipeline] = Pipeline
    depth: int = 0
    graphs: bool = True
    graph_max_batch: int = 256
    parameters: Parameters = FITTED
    slow_stages: dict[int, float] = field(default_factory=dict)
    cohorted: bool = False
    max_running: int = 2048
    max_micro_batch: int | None = None
    kv_share: float | None = None
    """Size of the KV pool, in what all requests of the largest point need."""
    slow_hops: dict[int, float] = field(default_factory=dict)
    compile_count: int = 0
    compile_ms: float = 0.0
    throttle: dict[str, Any] = field(default_factory=dict)
    cards: dict[str, dict[str, int]] = field(default_factory=dict)
    p2p_refused: bool = False
    link_ms: float = 0.0
    delay_ms: float = 0.0
    client_ms: float = 0.0
    limit_of_bound: float | None = None


@dataclass(frozen=True)
class Load:
    concurrencies: tuple[int, ...] = (1, 8, 16)
    input_tokens: int = 256
    output_tokens: int = 96
    rounds: int = 4


class Driver:
    """What stands in for NVML: readings out of what the fake engine writes for its stand-in."""

    def __init__(self, server: Server) -> None:
        self.handles = list(range(STAGES))
        self.facts: list[dict[str, int]] = [{} for _ in self.handles]
        self._refused = [(rank, rank + 1) for rank in range(STAGES - 1)] if server.p2p_refused else []

    def identity(self, index: int) -> dict[str, Any]:
        limits = {"power_limit_w": gpus.LIMIT_W, "sm_clock_max_mhz": 2430, "memory_clock_max_mhz": 12481, "pcie_width_max": 16}
        return {"index": index, "uuid": f"GPU-{index}", "name": "simulated", **limits}

    def reading(self, index: int) -> dict[str, Any]:
        facts = self.facts[index]
        return {
            "index": index,
            "power_w": facts["power_mw"] / 1000,
            "utilization_ratio": facts["util"] / 100,
            "memory_busy_ratio": facts["mem_util"] / 100,
            "sm_clock_mhz": facts["sm_clock"],
            "throttle": [name for bit, name in THROTTLE_BITS.items() if facts["throttle"] & bit],
        }

    def slow_reading(self, index: int) -> dict[str, Any]:
        return {"memory_mib": self.facts[index]["mem_used_mib"], "pcie_width": self.facts[index].get("pcie_width", 16)}

    def traffic(self, index: int) -> dict[str, Any]:
        return {}

    def processes(self) -> dict[int, list[int]]:
        return {}

    def p2p_refused(self) -> list[tuple[int, int]]:
        return self._refused

    def listen(self) -> list[int]:
        return self.handles

    def xids(self) -> list[tuple[int | None, int]]:
        return []

    def close(self) -> None:
        return None


class Bed:
    """One server from its start to the end of all points."""

    def __init__(self, server: Server, load: Load) -> None:
        self.server, self.load = server, load
        stages = build_stages(
            num_layers=LAYERS,
            pp_size=STAGES,
            graphs=server.graphs,
            graph_max_batch=server.graph_max_batch,
            parameters=server.parameters,
            slowdown=server.slow_stages,
        )
        most = max(load.concurrencies)
        self.pool = round((server.kv_share or 8.0) * most * (load.input_tokens + load.output_tokens))
        self.pipeline = server.model(
            stages,
            async_depth=server.depth,
            parameters=server.parameters,
            max_running=server.max_running,
            max_micro_batch=server.max_micro_batch,
            cohorted=server.cohorted,
            faults=Faults(
                slow_hops=server.slow_hops,
                kv_tokens=None if server.kv_share is None else self.pool,
                compile_after=self._compiles(),
                compile_ms=server.compile_ms,
            ),
        )
        slowed = server.throttle.get("gpus", range(STAGES)) if server.throttle else ()
        for rank in slowed:
            self.pipeline.throttle[rank] = float(server.throttle["factor"])
        self.books = Books(self.pipeline, timescale=1.0)
        self.driver = Driver(server)
        self._render_cards([0.0] * STAGES, [0.0] * STAGES)
        self.cards = Cards(lambda: self.driver)  # type: ignore[arg-type,return-value]
        self.cards.place(1, STAGES)
        self.host = Folded()
        self._owed = [0.0] * STAGES
        self._client_busy_ms = self._client_free = self._link_free = 0.0
        self._last: tuple[float, list[float], list[float], float] = (0.0, [0.0] * STAGES, [0.0] * STAGES, 0.0)

    def _compiles(self) -> tuple[int, ...]:
        """Spread over the windows of the larger points, warm-ups left out: what is compiled there is not seen."""
        begun, found = 0, []
        for concurrency in self.load.concurrencies:
            begun += WARM_UP_ROUNDS * concurrency
            counted = self.load.rounds * concurrency
            if concurrency > 1:
                found += [begun + concurrency + 1 + turn * 3 for turn in range(self.server.compile_count)]
            begun += counted
        return tuple(found)

    # ---------------------------------------------------------------- what the gate would read
    def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        engine = SimpleNamespace(
            pipeline=self.pipeline,
            books=self.books,
            now_ms=lambda: self.pipeline.now_ms,
            tokens_per_s=lambda: self.books.tokens_per_s(self.pipeline.now_ms),
        )
        view = SimpleNamespace(
            engine=engine,
            resolved=SimpleNamespace(decode_graphs=self.server.graphs),
            served_name="m",
            kv_tokens=self.pool,
            timescale=1.0,
            pp_size=STAGES,
            context_length=262_144,
            http_requests={},
        )
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for name, labels, value in _samples(view):  # type: ignore[arg-type]
            found.setdefault(name, []).append((dict(labels), float(value)))
        return found

    def _render_cards(self, compute: list[float], memory: list[float]) -> None:
        control = SimpleNamespace(throttle=self.server.throttle, cards=self.server.cards)
        view = SimpleNamespace(control=control, pp_size=STAGES, tp_size=1, phase="ready")
        for line in gpus.render(view, compute, memory).splitlines():  # type: ignore[arg-type]
            _, index, key, value = line.split()
            self.driver.facts[int(index)][key] = int(value)

    def read(self, watch: EngineWatch) -> None:
        """One reading of everything, at the pipeline's own time."""
        now = self.pipeline.now_ms
        before, compute, memory, busy = self._last
        span = max(now - before, 1e-9)
        worked = self._client_busy_ms - max(0.0, self._client_free - now)
        self._last = now, list(self.pipeline.compute_ms), list(self.pipeline.memory_ms), worked
        # The clock books a pass when it starts: what has not been worked off yet is carried over to the next reading.
        for rank in range(STAGES):
            self._owed[rank] += self.pipeline.compute_ms[rank] - compute[rank]
        done = [min(owed, span) for owed in self._owed]
        self._owed = [owed - part for owed, part in zip(self._owed, done, strict=True)]
        streamed = [(a - b) / span for a, b in zip(self.pipeline.memory_ms, memory, strict=True)]
        self._render_cards([part / span for part in done], streamed)
        at = round(now * MS)
        self.cards.read(at)
        self.host.add(at, {"client_cpu_ratio": min(1.0, max(0.0, worked - busy) / span + 0.02), "cpu_ratio": 0.2})
        watch.take(at, self.metrics())

    # ---------------------------------------------------------------- one point
    def deliver(self, made_ms: float) -> float:
        """When the client has read a token that the engine made: after the link, then after its own processor."""
        if self.server.link_ms:
            self._link_free = made_ms = max(made_ms, self._link_free) + self.server.link_ms
        if self.server.client_ms:
            self._client_free = made_ms = max(made_ms, self._client_free) + self.server.client_ms
            self._client_busy_ms += self.server.client_ms
        return made_ms

    def point(self, concurrency: int, watch: EngineWatch) -> PointLoad:
        """A closed loop of so many workers: warm-up, then the window until each has completed its rounds; the rest is cut."""
        pipeline, shape = self.pipeline, self.load
        load = PointLoad(concurrency, [[] for _ in range(concurrency)])
        due: list[tuple[float, int, str, int]] = []  # (when, serial, what, worker)
        going: dict[int, tuple[Trace, int]] = {}
        warm, ready = [0] * concurrency, []
        serial, next_read = 0, pipeline.now_ms

        def later(when: float, what: str, worker: int) -> None:
            nonlocal serial
            serial += 1
            heapq.heappush(due, (when, serial, what, worker))

        for worker in range(concurrency):
            later(pipeline.now_ms, "send", worker)
        pending: dict[int, Trace] = {}
        while load.rounds < shape.rounds:
            following = [moment for moment in (pipeline.next_ms(), due[0][0] if due else None, next_read) if moment is not None]
            for event in pipeline.advance(max(min(following), pipeline.now_ms)):
                self.books.note(event)
                if not isinstance(event, TokenDone):
                    continue
                trace, worker = going[event.request]
                moment = self.deliver(event.at_ms)
                trace.chunks.append([round(moment * MS), 1])
                if not event.last:
                    continue
                del going[event.request]
                self._end(trace, "ok", round(moment * MS))
                if load.window_start_ns is not None:
                    load.streams[worker].append(trace)
                    later(moment + TURNAROUND_MS, "send", worker)
                    continue
                load.warm_up.append(trace)
                warm[worker] += 1
                if warm[worker] < WARM_UP_ROUNDS:
                    later(moment + TURNAROUND_MS, "send", worker)
                    continue
                ready.append(worker)
                if len(ready) == concurrency:
                    opened = max(one.done_ns or 0 for one in load.warm_up)
                    load.window_start_ns = opened
                    for each in ready:
                        later(opened / MS + TURNAROUND_MS, "send", each)
            while due and due[0][0] <= pipeline.now_ms:
                when, key, what, worker = heapq.heappop(due)
                if what == "send":
                    trace = Trace(planned_ns=round(when * MS))
                    pending[worker] = trace
                    later(when + self.server.delay_ms, "arrive", worker)
                    continue
                going[self._key(key, concurrency)] = pending.pop(worker), worker
                self.books.begin(self._key(key, concurrency), pipeline.now_ms, prompt_tokens=shape.input_tokens, cached_tokens=0)
                pipeline.submit(
                    pipeline.now_ms,
                    self._key(key, concurrency),
                    prompt_tokens=shape.input_tokens,
                    output_tokens=shape.output_tokens,
                )
            if pipeline.now_ms >= next_read:
                self.read(watch)
                next_read = pipeline.now_ms + READ_EVERY_MS
        load.window_end_ns = max(one.done_ns or 0 for one in load.window)
        for key, (trace, _worker) in going.items():
            pipeline.cancel(key)
            self.books.forget(key)
            self._end(trace, "cancelled", load.window_end_ns)
            load.drained.append(trace)
        self._client_free = self._link_free = 0.0
        return load

    def _key(self, serial: int, concurrency: int) -> int:
        return concurrency * 1_000_000 + serial

    def _end(self, trace: Trace, status: str, at_ns: int) -> None:
        trace.done_ns, trace.status = at_ns, status
        trace.output_tokens = trace.events = len(trace.chunks)
        trace.input_tokens, trace.cached_tokens = self.load.input_tokens, 0
        trace.text, trace.characters, trace.distinct = "abcdefgh", 8, set("abcdefgh")

    # ---------------------------------------------------------------- the whole run
    def run(self) -> dict[str, Any]:
        """Return the result as far as the diagnosis needs it, with the diagnosis in it."""
        context = GateContext(model_config=MODEL, tp_size=1, pp_size=STAGES, bandwidth_gb_s=BANDWIDTH_GB_S)
        shape = self.load
        bounds = {level: context.bound(concurrency=level, context_tokens=shape.input_tokens) for level in shape.concurrencies}
        points: list[dict[str, Any]] = []
        share = self.server.limit_of_bound
        for level, bound in bounds.items():
            points.append({"concurrency": level})
            if share is not None and bound is not None:
                points[-1]["min_output_tokens_per_s"] = share * bound.tokens_per_s
        plan = GatePlan.from_dict({"input_tokens": shape.input_tokens, "output_tokens": shape.output_tokens, "points": points})
        entries, windows = [], []
        wire = Wire(PromptMaker(seed=plan.seed, nonce="", input_tokens=plan.input_tokens), "kimi", plan)
        for index, point in enumerate(plan.points):
            run = PointRun(
                index=index,
                count=len(plan.points),
                point=point,
                wire=wire,
                against=Yardsticks(plan, bounds[point.concurrency]),
                folder=None,  # type: ignore[arg-type]
                report=lambda line: None,
            )
            run.engine_watch = EngineWatch(lambda: 0, lambda line: None)
            run.before = self.metrics()
            run.load = self.point(point.concurrency, run.engine_watch)
            run.after = self.metrics()
            windows += run.windows
            beside = beside_facts(run.engine_watch, run.windows, self.host.over, self.cards.busy)
            run.busy = {"the load client itself": beside["host"]["client_cpu_ratio"]}
            entries.append(run.entry(gpus=self.cards.summary(run.windows), stream_interval=1, doubts=[], beside=beside))
        result = {
            "points": entries,
            "gpus": self.cards.summary(windows),
            "engine": {"graph_passes": graph_passes_of(entries), "resolved": {"pp_size": STAGES, "tp_size": 1}},
        }
        result["diagnosis"] = diagnose(result, context.evidence({}))
        return result
