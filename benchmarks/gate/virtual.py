# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server in virtual time: the gate's own load loop runs against it without waiting, thousands of times in minutes.

The server's speed wanders (an Ornstein-Uhlenbeck process), requests differ, and requests that share a micro-batch stay
together and slow each other, as in a pipeline: either for good, or until one of them changes its place.
"""

from __future__ import annotations

import asyncio
import bisect
import heapq
import math
import random
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

STEP_S = 0.25
NS = 1_000_000_000


@dataclass(frozen=True)
class Noise:
    """One kind of server. ``truth`` is its rate in the long run [tokens/s], or of one run where its cohorts stay for good."""

    name: str
    workers: int = 16
    request_spread: float = 0.03
    wander: float = 0.0
    wander_s: float = 1.0
    cohorts: int = 1
    crowding: float = 0.0
    stays: float = 1.0
    seconds: float = 4.0
    tokens: int = 256


class VirtualServer:
    """Answers when a request that starts now would be done. Same seed, same server."""

    def __init__(self, noise: Noise, seed: str, horizon_s: float) -> None:
        self.noise = noise
        self._chance = random.Random(f"{seed}/requests")
        placing = random.Random(f"{seed}/cohorts")
        self._cohort = [placing.randrange(noise.cohorts) for dummy in range(noise.workers)]
        self._size = [self._cohort.count(index) for index in range(noise.cohorts)]
        self._work = _speed(noise, random.Random(f"{seed}/speed"), horizon_s)

    def done_s(self, worker: int, start_s: float) -> float:
        noise = self.noise
        if self._chance.random() > noise.stays:
            self._size[self._cohort[worker]] -= 1
            self._cohort[worker] = self._chance.randrange(noise.cohorts)
            self._size[self._cohort[worker]] += 1
        crowd = 1 + noise.crowding * (self._size[self._cohort[worker]] - 1)
        work = noise.seconds * crowd * max(1 + self._chance.gauss(0, noise.request_spread), 0.2)
        at = start_s / STEP_S
        done = self._work[int(at)] + (at - int(at)) * (self._work[int(at) + 1] - self._work[int(at)]) + work
        index = bisect.bisect_left(self._work, done)
        return (index - 1 + (done - self._work[index - 1]) / (self._work[index] - self._work[index - 1])) * STEP_S

    @property
    def frozen_rate(self) -> float:
        """Rate of these very cohorts, noise left out."""
        noise = self.noise
        times = (noise.seconds * (1 + noise.crowding * (self._size[cohort] - 1)) for cohort in self._cohort)
        return sum(noise.tokens / time for time in times)


def truth(noise: Noise, seed: str) -> float:
    """Return the true rate of the server that ``seed`` names [tokens/s]."""
    if noise.cohorts == 1:
        return noise.workers * noise.tokens / noise.seconds
    if noise.stays == 1:
        return VirtualServer(noise, seed, 1).frozen_rate
    return _long_run(noise)


_known: dict[Noise, float] = {}


def _long_run(noise: Noise, seconds: float = 40_000) -> float:
    if noise not in _known:
        server = VirtualServer(noise, "long", seconds + 60)
        due = [(server.done_s(worker, 0.0), worker) for worker in range(noise.workers)]
        heapq.heapify(due)
        count, settled = 0, seconds / 20
        while due[0][0] < seconds:
            now, worker = due[0]
            count += now > settled
            heapq.heapreplace(due, (server.done_s(worker, now), worker))
        _known[noise] = count * noise.tokens / (seconds - settled)
    return _known[noise]


def _speed(noise: Noise, chance: random.Random, horizon_s: float) -> list[float]:
    """Return the work done since the start at each step; 1 a second on average."""
    keep = math.exp(-STEP_S / noise.wander_s)
    push = math.sqrt(1 - keep * keep) * noise.wander
    level, done = chance.gauss(0, noise.wander) if noise.wander else 0.0, [0.0]
    for dummy in range(int(horizon_s / STEP_S) + 2):
        done.append(done[-1] + STEP_S * max(1 + level, 0.05))
        level = keep * level + (chance.gauss(0, push) if noise.wander else 0.0)
    return done


class _NoWaiting(selectors.SelectSelector):
    """Instead of waiting for the next timer, sets the clock to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += max(timeout or 0.0, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps from timer to timer."""

    def __init__(self) -> None:
        self.clock = _NoWaiting()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

    def time_ns(self) -> int:
        return round(self.clock.now * NS)


def run_virtually(main: Callable[[VirtualLoop], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to its end in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.close()
