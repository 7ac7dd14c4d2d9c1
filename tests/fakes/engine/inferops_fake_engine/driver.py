"""Play the clock in real time: requests in, tokens out when the wall clock has reached them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable

from .books import Books
from .clock import Pipeline, TokenDone


class Engine:
    def __init__(self, pipeline: Pipeline, *, timescale: float) -> None:
        self.pipeline = pipeline
        self.timescale = timescale
        self.books = Books(pipeline, timescale=timescale)
        self.on_pass: Callable[[], None] = lambda: None
        self._queues: dict[int, asyncio.Queue[bool]] = {}
        self._keys = itertools.count()
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def requests(self) -> int:
        """Generations that have been taken and not yet ended."""
        return len(self._queues)

    def now_ms(self) -> float:
        """Simulated time [ms]."""
        return (self._loop.time() - self._zero) * 1000.0 * self.timescale

    def tokens_per_s(self) -> float:
        return self.books.tokens_per_s(self.now_ms())

    async def generate(self, *, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> AsyncIterator[bool]:
        """Yield once per token, with whether it is the last; leaving early takes the request out of the pipeline."""
        key = next(self._keys)
        queue: asyncio.Queue[bool] = asyncio.Queue()
        self._queues[key] = queue
        self._advance()
        at = max(self.now_ms(), self.pipeline.now_ms)
        self.pipeline.submit(at, key, prompt_tokens=prompt_tokens - cached_tokens, output_tokens=output_tokens)
        self.books.begin(key, at, prompt_tokens=prompt_tokens, cached_tokens=cached_tokens)
        self._schedule()
        last = False
        try:
            while not last:
                last = await queue.get()
                yield last
        finally:
            del self._queues[key]
            if not last:
                self.pipeline.cancel(key)
                self.books.forget(key)

    def _advance(self) -> None:
        for event in self.pipeline.advance(self.now_ms()):
            self.books.note(event)
            if not isinstance(event, TokenDone):
                continue
            queue = self._queues.get(event.request)
            if queue is not None:
                queue.put_nowait(event.last)

    def _tick(self) -> None:
        self._timer = None
        self._advance()
        self.on_pass()
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        following = self.pipeline.next_ms()
        if following is not None:
            self._timer = self._loop.call_at(self._zero + following / 1000.0 / self.timescale, self._tick)
