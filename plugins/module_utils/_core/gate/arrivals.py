# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The open loop of one point: requests arrive by a schedule whatever the server does; each one's clock starts when it is due."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

from ..units import NS_PER_S, s_to_ns
from .load import TICK_S, PointLoad, Send
from .stream import Trace

# The window opens when the server has taken in the load: this many times as many answers as are in flight, at least so many.
SETTLED_TURNS, SETTLED_LEAST = 2, 4
# A load that never settles is measured anyway, after this share of the longest window.
WARM_UP_SHARE = 0.25
# Requests of the window that have not ended by then, as a share of the longest window, count as missed.
DRAIN_SHARE = 0.5
MOST_FAILURES = 8


def gaps_s(rate: float, arrivals: str, seed: str) -> Iterator[float]:
    """Yield the times between arrivals [s]: exponential ones from the seed, or equal ones.

    >>> next(gaps_s(4, "constant", "7/0"))
    0.25
    """
    source = random.Random(f"{seed}/arrivals")
    while True:
        yield source.expovariate(rate) if arrivals == "poisson" else 1 / rate


class OpenLoop:
    """Sends a request whenever one is due, at most ``most_in_flight`` at a time; what is held back ages all the same.

    Warm-up: arrivals at full rate until the load has settled. Window: the requests that fall due in it, all of them; they
    still arrive at the same rate while the last of them are awaited (``load.after``), so that no figure has a quiet tail.
    ``decided(load)`` is asked whenever the oldest open request of the window has ended: up to there nothing is left out that
    takes long.
    """

    def __init__(
        self, send: Send, gaps: Iterator[float], load: PointLoad, *, clock_ns: Callable[[], int], max_seconds: float
    ) -> None:
        self._send, self._gaps, self._clock_ns, self._max_seconds = send, gaps, clock_ns, max_seconds
        self.load = load
        self._room = asyncio.Semaphore(load.concurrency)
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = load.unended
        self._next = 0
        self._problem: Exception | None = None

    async def run(self, decided: Callable[[PointLoad], bool], on_tick: Callable[[PointLoad], None]) -> PointLoad:
        """Let the load settle, open the window, run until decided or out of time, then await the requests of the window."""
        self._decided = decided
        feeder = asyncio.create_task(self._feed())
        try:
            await self._supervise(feeder, on_tick)
        except asyncio.CancelledError:
            self.load.stop = "interrupted"
            raise
        finally:
            if self.load.window_start_ns is not None and self.load.window_end_ns is None:
                self.load.window_end_ns = self._clock_ns()
            tasks = [feeder, *self._tasks]
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                self._problem = self._problem or (outcome if isinstance(outcome, Exception) else None)
            self._close()
        if self._problem is not None:
            raise self._problem
        return self.load

    async def _supervise(self, feeder: asyncio.Task[None], on_tick: Callable[[PointLoad], None]) -> None:
        began, load = self._clock_ns(), self.load
        while self._problem is None and not feeder.done():
            now = self._clock_ns()
            if load.window_start_ns is None:
                self._settle(now - began)
            elif load.window_end_ns is None and (self._stop.is_set() or now - load.window_start_ns >= s_to_ns(self._max_seconds)):
                load.window_end_ns = now
            if self._stop.is_set() and load.stop != "decided":
                return
            if load.window_end_ns is not None and (
                not any(trace in load.going for trace in self._open.values())
                or now - load.window_end_ns >= s_to_ns(DRAIN_SHARE * self._max_seconds)
            ):
                return
            on_tick(load)
            await asyncio.sleep(TICK_S / 5)

    def _settle(self, elapsed_ns: int) -> None:
        """Open the window once the server has answered more than twice what is in flight, or after the longest wait."""
        load, turns = self.load, len(self.load.warm_up)
        load.settled = turns >= max(SETTLED_LEAST, SETTLED_TURNS * len(load.going))
        if load.settled or elapsed_ns >= s_to_ns(WARM_UP_SHARE * self._max_seconds):
            load.window_start_ns = self._clock_ns()

    async def _feed(self) -> None:
        due = self._clock_ns()
        for gap in self._gaps:
            due += round(gap * NS_PER_S)
            while (ahead := due - self._clock_ns()) > 0:
                await asyncio.sleep(ahead / NS_PER_S)
            trace = Trace(planned_ns=due)
            number, self._next = self._next, self._next + 1
            if self._counts(trace):
                self._open[number] = trace
            task = asyncio.create_task(self._one(number, trace))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if number % 64 == 63:
                # Far behind the schedule nothing above waits: the answers must be read all the same.
                await asyncio.sleep(0)

    def _counts(self, trace: Trace) -> bool:
        load = self.load
        if load.window_start_ns is None or trace.planned_ns < load.window_start_ns:
            return False
        return load.window_end_ns is None or trace.planned_ns < load.window_end_ns

    async def _one(self, number: int, trace: Trace) -> None:
        load = self.load
        warm_up = load.window_start_ns is None or trace.planned_ns < load.window_start_ns
        load.going.add(trace)
        held, place = self._room.locked(), None
        try:
            async with self._room:
                if held:
                    load.held_back += number in self._open
                elif number in self._open:
                    place = len(load.late_ns)
                    load.late_ns.append(max(self._clock_ns() - trace.planned_ns, 0))
                await self._send(number, warm_up, trace)
                if place is not None and trace.taken_up_ns is not None:
                    load.late_ns[place] = max(trace.taken_up_ns - trace.planned_ns, 0)
        except asyncio.CancelledError:
            trace.status = "cancelled"
            if trace.done_ns is None:
                trace.done_ns = self._clock_ns()
            if number not in self._open:
                load.after.append(trace)
            raise
        except Exception as exc:  # told to whoever waits for the whole loop
            self._problem = exc
            return
        finally:
            load.going.discard(trace)
        self._ended(number, trace, warm_up=warm_up)

    def _ended(self, number: int, trace: Trace, *, warm_up: bool) -> None:
        load = self.load
        if number not in self._open:
            (load.warm_up if warm_up else load.after).append(trace)
            if trace.status != "ok" and warm_up:
                self._end("warm-up failed")
            return
        before = load.rounds
        for first in tuple(self._open):
            if self._open[first] in load.going:
                break
            load.streams[0].append(self._open.pop(first))
        if load.failed >= MOST_FAILURES:
            self._end("too many failures")
        if load.window_end_ns is None and load.rounds > before and self._decided(load):
            self._end("decided")

    def _close(self) -> None:
        """Sort what is left: ended behind one that has not, or cut."""
        for trace in self._open.values():
            (self.load.drained if trace.status == "cancelled" else self.load.streams[0]).append(trace)
        self._open.clear()

    def _end(self, why: str) -> None:
        if not self._stop.is_set():
            self.load.stop = why
            self._stop.set()
