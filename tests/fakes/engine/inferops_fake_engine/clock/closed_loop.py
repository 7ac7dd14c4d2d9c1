"""Play a closed loop of identical requests against the model alone: what the four figures are fitted with."""

from __future__ import annotations

from dataclasses import dataclass

from .pipeline import Pipeline, TokenDone


@dataclass(frozen=True)
class Outcome:
    output_tokens_per_s: float
    compute_ratio: tuple[float, ...]  # share of the time in which each stage computed, launch gaps included
    memory_ratio: tuple[float, ...]  # share of the time in which each stage's card streamed weights
    requests: int


def closed_loop(
    pipeline: Pipeline, *, concurrency: int, input_tokens: int, output_tokens: int, rounds: int = 6, turnaround_ms: float = 2.0
) -> Outcome:
    """Keep ``concurrency`` requests in flight; count tokens after the first round, until the last round begins to end."""
    serial = concurrency
    for key in range(concurrency):
        pipeline.submit(pipeline.now_ms, key, prompt_tokens=input_tokens, output_tokens=output_tokens)
    pending: list[tuple[float, int]] = []
    finished = tokens = 0
    began: float | None = None
    base: tuple[list[float], list[float]] = ([], [])
    while True:
        due = [t for t in (pipeline.next_ms(), pending[0][0] if pending else None) if t is not None]
        at = min(due)
        for event in pipeline.advance(at):
            if not isinstance(event, TokenDone):
                continue
            tokens += began is not None
            if event.last:
                finished += 1
                pending.append((event.at_ms + turnaround_ms, serial))
                serial += 1
        if began is None and finished >= concurrency:
            began, base = at, (list(pipeline.compute_ms), list(pipeline.memory_ms))
            counted_from = finished
        if began is not None and finished >= concurrency * rounds:
            window = at - began
            return Outcome(
                tokens / window * 1000.0,
                tuple((a - b) / window for a, b in zip(pipeline.compute_ms, base[0], strict=True)),
                tuple((a - b) / window for a, b in zip(pipeline.memory_ms, base[1], strict=True)),
                finished - counted_from,
            )
        while pending and pending[0][0] <= pipeline.now_ms:
            when, key = pending.pop(0)
            pipeline.submit(max(when, pipeline.now_ms), key, prompt_tokens=input_tokens, output_tokens=output_tokens)
