# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The whole gate: probes, points, verdict, diagnosis, reports; every stop on the way leaves a readable folder."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from ..units import human_seconds, ns_to_s
from . import engine, probes
from .asking import Asker
from .beside import beside_facts
from .bound import PointBound, mean_context, with_limits
from .client import Client, clean_base_url, http_library
from .clocks import ClockWatch, wall_time
from .context import GateContext
from .correctness import Answers, check_answers
from .diagnosis import diagnose
from .folder import ResultFolder
from .gpu import Cards, throttled
from .host import HostWatch, elsewhere, interface_to
from .lease import only_gate
from .measure import HOPELESS, PointRun, client_cpu_s, point_line
from .metrics import in_flight_mean, input_mean
from .nvml import Nvml, no_nvml
from .plan import GatePlan
from .reasons import graph_passes_of, point_reasons
from .report import write_reports
from .sharing import SharedCards, time_copies
from .terminal import table
from .verdict import Yardsticks, run_verdict
from .watch import Watch
from .wire import PromptSource, Wire, prompts_for, settle_wire

SCHEMA = 1
STOP_POLL_S = 0.2
Progress = Callable[[dict[str, Any]], None]


def run_gate(
    base_url: str,
    plan: GatePlan,
    out_dir: Path | str,
    *,
    api_key: str | None = None,
    context: GateContext | None = None,
    on_progress: Progress = lambda line: None,
    should_stop: Callable[[], bool] = lambda: False,
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
    open_nvml: Callable[[], Nvml] = Nvml,
    time_copies: Callable[[Sequence[str]], Mapping[str, Any]] = time_copies,
    nonce: str | None = None,
    watch: ClockWatch | None = None,
) -> dict[str, Any]:
    """Judge a server and return the result (docs/metrics.md), which also lies in ``out_dir``.

    Raises InferopsError when nothing could be judged at all: no server, another model, no HTTP library, no folder.
    ``should_stop`` is asked five times a second; once true, the run ends with what it has, as inconclusive.
    """
    http_library()
    with only_gate(clean_base_url(base_url)):
        folder = ResultFolder(Path(out_dir))
        gate = Gate(base_url, plan, folder, context=context, on_progress=on_progress, monotonic_ns=monotonic_ns)
        gate.nonce = gate.nonce if nonce is None else nonce
        gate.watch = ClockWatch() if watch is None else watch
        gate.cards = Cards(open_nvml if gate.away is None else lambda: no_nvml(gate.away))
        gate.sharing = SharedCards(gate.cards, gate.note, time_copies=time_copies)
        host = HostWatch(interface_to(base_url), cpu_clocks=lambda: client_cpu_s(gate._current))
        beside = gate.beside = Watch(gate.cards, host, clock_ns=gate.clock_ns, write=gate.folder.sample)
        try:
            asyncio.run(gate.run(api_key, should_stop))
            beside.close()
            return gate.finish()
        except InferopsError as exc:
            # Whoever finds the folder later reads there, too, that nothing was judged and why.
            gate.doubtful.append(f"{exc.what}: {exc.details['why']}" if exc.details.get("why") else exc.what)
            gate.finish()
            raise
        finally:
            beside.close()
            folder.close()


class Gate:
    """The state of one run."""

    def __init__(
        self,
        base_url: str,
        plan: GatePlan,
        folder: ResultFolder,
        *,
        context: GateContext | None,
        on_progress: Progress,
        monotonic_ns: Callable[[], int],
    ) -> None:
        self.base_url, self.plan, self.folder = base_url, plan, folder
        self.context = GateContext() if context is None else context
        self._on_progress, self._monotonic_ns = on_progress, monotonic_ns
        self._start_ns = monotonic_ns()
        self.nonce = secrets.token_hex(8)
        self.cards: Cards
        self.sharing: SharedCards
        self.beside: Watch
        self.away = elsewhere(base_url, here=self.context.server_here, interface=interface_to(base_url))
        self.watch: ClockWatch
        self.started_at = wall_time()
        self.engine: dict[str, Any] = {"version": None, "simulated": False, "resolved": {}}
        self.prompts: dict[str, Any] | None = None
        self.points: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.doubtful: list[str] = []
        self.notes: list[str] = []
        self.answers = Answers()
        self._current: PointRun | None = None

    def clock_ns(self) -> int:
        """Monotonic time since the start of this run."""
        return self._monotonic_ns() - self._start_ns

    async def run(self, api_key: str | None, should_stop: Callable[[], bool]) -> None:
        """Do everything that needs the server."""
        self.watch.look()
        work = asyncio.create_task(self._work(api_key))
        stopped = False
        while not work.done():
            await asyncio.wait({work}, timeout=STOP_POLL_S)
            self.watch.look()
            if not stopped and not work.done() and (should_stop() or self.folder.problem is not None or self.cards.deadly()):
                stopped = True
                work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            if not self.cards.deadly():
                self.doubtful.append("interrupted: what had been measured until then is kept")
            self._close_point()
        # Another try would meet the same card: a failure, not a doubt.
        self.wrong += self.cards.deadly()
        self.doubtful += self.watch.doubts()

    def finish(self) -> dict[str, Any]:
        """Write the final result and the reports, and return the result."""
        if self.folder.problem is not None:
            self.doubtful.append(f"the result folder could not be written any more: {self.folder.problem}")
        result = self.result(final=True)
        result["diagnosis"] = diagnose(result, self.context.evidence(self.plan.require))
        self.folder.result(result)
        for row in table(result):
            self._report({"state": "table", "text": row})
        text = f"gate  verdict {result['verdict']} after {human_seconds(ns_to_s(self.clock_ns()))}"
        self._report({"state": "done", "verdict": result["verdict"], "text": text})
        self.folder.release()
        try:
            write_reports(self.folder.path)
        except OSError as exc:
            self.note(f"the reports could not be written: {exc.strerror or exc}")
        return result

    def result(self, *, final: bool = False) -> dict[str, Any]:
        """Return the result so far; before the end it is never a pass."""
        verdicts = [point["verdict"] for point in self.points]
        verdict = run_verdict(
            verdicts, planned=len(self.plan.points), wrong=bool(self.wrong), doubtful=bool(self.doubtful) or not final
        )
        reasons = self.wrong + point_reasons(self.points, self.plan.require)
        missing = len(self.plan.points) - len(self.points)
        unfinished = [f"{missing} of {len(self.plan.points)} points were not measured"] if missing else []
        windows = [tuple(point["window_ns"]) for point in self.points if point["window_ns"]]
        return {
            "schema": SCHEMA,
            "verdict": verdict,
            "finished": final,
            "unwritten": self.folder.problem,
            "reasons": reasons + self.doubtful + unfinished,
            "notes": self.notes,
            "started_at": self.started_at,
            "ended_at": wall_time(),
            "base_url": self.base_url,
            "plan": {**self.plan.as_dict(), "nonce": self.nonce},
            "prompts": self.prompts,
            "correctness": self.answers.figures,
            "points": self.points,
            "gpus": self.cards.summary(windows),
            "engine": {**self.engine, "graph_passes": graph_passes_of(self.points)},
            "diagnosis": [],
            "bound": {"bandwidth_gb_s": self.context.bandwidth(), "assumptions": self.context.assumptions()},
            **(self.context.about or {}),
        }

    async def _work(self, api_key: str | None) -> None:
        async with Client(self.base_url, api_key=api_key, clock_ns=self.clock_ns) as client:
            model = await probes.served_model(client, self.plan.model)
            maker = prompts_for(self.plan, self.nonce, self.context.model_config)
            self.prompts = maker.facts()
            self.engine = await engine.read_engine(client)
            self.context = self.context.filled_from(self.engine["resolved"])
            self.plan, chosen = with_limits(self.plan, self.context)
            if chosen is not None:
                self.note(chosen)
            await self.sharing.before(self.context)
            if self.away is not None:
                self.note("processors and network of the server were not observed: the host told here is the load client's")
            self.folder.result(self.result())
            self._report({"state": "probe", "text": f"gate  asking {model} one question before the load"})
            asker = Asker(client, self.plan, model)
            self.wrong += await probes.before_load(asker, self.plan, stream_interval=self._stream_interval)
            if not self.wrong:
                await self._check_answers(asker)
            if self.wrong:
                return
            wire = await self._wire(client, model, maker)
        if wire is None:
            return
        for index in range(len(self.plan.points)):
            async with Client(self.base_url, api_key=api_key, clock_ns=self.clock_ns) as client:
                await self._point(index, client, wire)
            if self.points[-1]["ended_by"] in HOPELESS:
                return
        async with Client(self.base_url, api_key=api_key, clock_ns=self.clock_ns) as client:
            again = await probes.sanity(Asker(client, self.plan, model), self.plan, stream_interval=self._stream_interval)
            self.wrong += [f"after the load: {reason}" for reason in again]

    async def _check_answers(self, asker: Asker) -> None:
        self.answers = await check_answers(
            asker,
            self.plan,
            resolved=self.engine["resolved"],
            promoted=self.context.promoted_result,
            nonce=self.nonce,
            say=lambda text: self._report({"state": "probe", "text": f"gate  {text}"}),
        )
        self.wrong += self.answers.wrong
        self.doubtful += self.answers.doubtful
        for note in self.answers.notes:
            self.note(note)

    @property
    def _stream_interval(self) -> int | None:
        """How many tokens the server puts into a chunk, when it says so."""
        found = self.engine["resolved"].get("stream_interval")
        return found if isinstance(found, int) else None

    async def _wire(self, client: Client, model: str, maker: PromptSource) -> Wire | None:
        wire, problem = await settle_wire(client, self.plan, model, maker)
        if problem is not None:
            self.wrong.append(problem)
        elif wire is not None and (note := wire.note()) is not None:
            self.note(note)
        return wire

    async def _point(self, index: int, client: Client, wire: Wire) -> None:
        point = self.plan.points[index]
        against = Yardsticks(self.plan, self._bound(point.concurrency), self.context.promoted_result)
        self._current = PointRun(
            index=index,
            count=len(self.plan.points),
            point=point,
            wire=wire,
            against=against,
            folder=self.folder,
            report=self._report,
            start_ns=self._start_ns,
        )
        await self._current.run(client)
        await self.sharing.after()
        self._close_point()

    def _bound(self, concurrency: int, input_tokens: float | None = None) -> PointBound | None:
        return self.context.bound(concurrency=concurrency, context_tokens=mean_context(self.plan, input_tokens))

    def _close_point(self) -> None:
        """Turn the current point, whole or cut short, into an entry of the result."""
        run, self._current = self._current, None
        if run is None or not hasattr(run, "load"):
            return
        load = run.load
        if load.rate is not None or self.plan.prompts is not None:
            busy = load.concurrency if load.rate is None else max(round(in_flight_mean(load) or 0), 1)
            run.against = replace(run.against, bound=self._bound(busy, input_mean(load)))
        cards = self.cards.summary(run.windows)
        doubts = [*throttled(cards), *self.sharing.doubts()]
        beside = beside_facts(run.engine_watch, run.windows, self.beside.host, self.cards.busy, here=self.away is None)
        entry = run.entry(gpus=cards, stream_interval=self._stream_interval, doubts=doubts, beside=beside)
        self.points.append(entry)
        self.folder.result(self.result())
        self._report(point_line(run.index, run.count, entry))

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._report({"state": "note", "text": f"gate  {text}"})

    def _report(self, line: Mapping[str, Any]) -> None:
        self._on_progress(self.folder.progress({"elapsed_s": round(ns_to_s(self.clock_ns()), 1), **line}))
