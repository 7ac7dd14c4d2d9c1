"""What an engine counts about its requests, for /metrics: tokens, latencies, all in simulated time."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from .clock import Pipeline, PrefillDone, TokenDone

RATE_WINDOW_MS = 2000.0


@dataclass
class Sum:
    """Sum and count of a histogram."""

    total_ms: float = 0.0
    count: int = 0

    def add(self, value_ms: float) -> None:
        self.total_ms += value_ms
        self.count += 1


@dataclass
class _Open:
    begun_ms: float
    last_ms: float | None = None


class Books:
    """Feed it every request and every event of the pipeline."""

    def __init__(self, pipeline: Pipeline, *, timescale: float) -> None:
        self.pipeline, self.timescale = pipeline, timescale
        self.prompt_tokens = self.cached_tokens = self.output_tokens = self.finished = 0
        self.ttft, self.itl, self.e2e = Sum(), Sum(), Sum()
        self._open: dict[Hashable, _Open] = {}
        self._recent: deque[float] = deque()
        self._retracted_told = 0

    def begin(self, key: Hashable, at_ms: float, *, prompt_tokens: int, cached_tokens: int) -> None:
        self.prompt_tokens += prompt_tokens
        self.cached_tokens += cached_tokens
        self._open[key] = _Open(at_ms)

    def forget(self, key: Hashable) -> None:
        self._open.pop(key, None)

    def note(self, event: PrefillDone | TokenDone) -> None:
        if not isinstance(event, TokenDone):
            return
        self.output_tokens += 1
        self._recent.append(event.at_ms)
        request = self._open.get(event.request)
        if request is None:
            return
        if request.last_ms is None:
            self.ttft.add(event.at_ms - request.begun_ms)
        else:
            self.itl.add(event.at_ms - request.last_ms)
        request.last_ms = event.at_ms
        if event.last:
            self.finished += 1
            self.e2e.add(event.at_ms - request.begun_ms)
            del self._open[event.request]

    def tokens_per_s(self, now_ms: float) -> float:
        """Output tokens per second of simulated time, over the last two seconds."""
        while self._recent and self._recent[0] < now_ms - RATE_WINDOW_MS:
            self._recent.popleft()
        return len(self._recent) / RATE_WINDOW_MS * 1000.0

    def newly_retracted(self) -> int:
        """Requests retracted since this was last asked: the recorded gauge forgets as well."""
        told, self._retracted_told = self._retracted_told, self.pipeline.retracted
        return self.pipeline.retracted - told
