# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The closed loop of one point: so many requests in flight, each followed at once by the next, until told to stop."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from .stream import Trace

WARM_UP_ROUNDS = 2
TICK_S = 0.25
RETRY_PAUSE_S = 0.2
Send = Callable[[int, bool, Trace], Awaitable[Trace]]


@dataclass
class PointLoad:
    """Everything one point sent. ``streams[w]`` are the completed window requests of worker w, in order.

    With a ``rate`` [requests/s] they arrived by a schedule (see arrivals.py): one stream, and ``concurrency`` bounds them.
    """

    concurrency: int
    streams: list[list[Trace]]
    warm_up: list[Trace] = field(default_factory=list)
    drained: list[Trace] = field(default_factory=list)
    window_start_ns: int | None = None
    window_end_ns: int | None = None
    going: set[Trace] = field(default_factory=set)
    """Requests on their way, also while they grow."""
    stop: str = "deadline"
    rate: float | None = None
    arrivals: str | None = None
    unended: dict[int, Trace] = field(default_factory=dict)
    """Arrivals of the window that have not ended, or ended before an older one did, by number."""
    after: list[Trace] = field(default_factory=list)
    """Arrivals that keep the load up while the last requests of the window are awaited."""
    late_ns: array[int] = field(default_factory=lambda: array("q"))
    """How much later than planned the client set out with each request that it did not hold back."""
    held_back: int = 0
    settled: bool = True
    seen_ns: int | None = None
    """Up to when all that arrived is in here, while worker processes still receive; None: up to now."""

    @property
    def window(self) -> list[Trace]:
        """All completed window requests, in order of their planned start."""
        return sorted((trace for stream in self.streams for trace in stream), key=lambda trace: trace.planned_ns)

    @property
    def rounds(self) -> int:
        """How many requests each worker has completed in the window."""
        return min(map(len, self.streams))

    @property
    def tokens_seen(self) -> int:
        """Tokens received since the window opened, those of unfinished requests included."""
        opened = self.window_start_ns
        if opened is None:
            return 0
        counted = [trace.chunks for trace in (*self.window, *self.going, *self.drained)]
        return sum(sum(chunks.counts[bisect_left(chunks.times, opened) :]) for chunks in counted)

    def known_ns(self, now_ns: int | None) -> int | None:
        """Return the end of what can be counted: the end of the window, else now or what the workers have told so far."""
        if self.window_end_ns is not None:
            return self.window_end_ns
        if now_ns is None or self.seen_ns is None:
            return now_ns
        return min(now_ns, self.seen_ns)

    @property
    def failed(self) -> int:
        return sum(trace.status == "failed" for trace in self.window)


class ClosedLoop:
    """Keeps ``concurrency`` requests in flight.

    ``send(number, warm_up, trace)`` performs one request and fills its trace; its number is never used twice.
    ``decided(load)`` is asked after each whole round (every worker has completed one more request) and ends the point;
    ``on_tick(load)`` is for progress.
    """

    def __init__(self, send: Send, concurrency: int, *, clock_ns: Callable[[], int], max_seconds: float) -> None:
        self._send = send
        self._clock_ns = clock_ns
        self._max_seconds = max_seconds
        self._next = 0
        self._ready = 0
        self._go = asyncio.Event()
        self._stop = asyncio.Event()
        self.load = PointLoad(concurrency, [[] for dummy in range(concurrency)])

    async def run(self, decided: Callable[[PointLoad], bool], on_tick: Callable[[PointLoad], None]) -> PointLoad:
        """Warm up, open the window, run until decided or out of time, then cut what is still in flight."""
        workers = [asyncio.create_task(self._work(worker, decided)) for worker in range(self.load.concurrency)]
        try:
            await self._supervise(workers, on_tick)
        except asyncio.CancelledError:
            self.load.stop = "interrupted"
            raise
        finally:
            if self.load.window_start_ns is not None:
                self.load.window_end_ns = self._clock_ns()
            for worker in workers:
                worker.cancel()
            for outcome in await asyncio.gather(*workers, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome
        return self.load

    async def _supervise(self, workers: list[asyncio.Task[None]], on_tick: Callable[[PointLoad], None]) -> None:
        loop = asyncio.get_running_loop()
        deadline, opened = loop.time() + self._max_seconds, False
        while not self._stop.is_set():
            if self._go.is_set() and not opened:
                opened, deadline = True, loop.time() + self._max_seconds
            if loop.time() >= deadline or any(worker.done() for worker in workers):
                break
            on_tick(self.load)
            try:
                async with asyncio.timeout(TICK_S):
                    await (self._stop if opened else self._go).wait()
            except TimeoutError:
                continue

    async def _work(self, worker: int, decided: Callable[[PointLoad], bool]) -> None:
        for dummy in range(WARM_UP_ROUNDS):
            trace = await self._one(warm_up=True)
            self.load.warm_up.append(trace)
            if trace.status != "ok":
                self._end("warm-up failed")
        await self._open_window()
        while not self._stop.is_set():
            trace = await self._one(warm_up=False)
            rounds = self.load.rounds
            self.load.streams[worker].append(trace)
            if trace.status != "ok":
                if self.load.failed >= max(3, self.load.concurrency):
                    self._end("too many failures")
                await asyncio.sleep(RETRY_PAUSE_S)
            if self.load.rounds > rounds and decided(self.load):
                self._end("decided")

    async def _open_window(self) -> None:
        """Wait until every worker is warm, so that the window starts with all requests in flight."""
        self._ready += 1
        if self._ready == self.load.concurrency:
            self.load.window_start_ns = self._clock_ns()
            self._go.set()
        await self._go.wait()

    async def _one(self, *, warm_up: bool) -> Trace:
        number = self._next
        self._next += 1
        trace = Trace(planned_ns=self._clock_ns())
        self.load.going.add(trace)
        try:
            return await self._send(number, warm_up, trace)
        finally:
            self.load.going.discard(trace)

    def _end(self, why: str) -> None:
        if not self._stop.is_set():
            self.load.stop = why
            self._stop.set()
            self._go.set()
