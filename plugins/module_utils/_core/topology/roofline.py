# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The most tokens per second that memory bandwidth allows, at a concurrency: nothing on these cards can be faster.

Counted per decode step: every weight that must be read once, the distinct routed experts a micro-batch is expected
to touch under uniform routing, the cache of each request. Compute, launches and links cost nothing here. Requests
are put into equal micro-batches in the best way; stages are taken as even, which no split of whole layers beats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from .model import Layer, ModelShape
from .stages import stage_layers

BYTES_PER_GB = 1e9


@dataclass(frozen=True)
class Filling:
    """How a number of requests is spread over micro-batches, and what that gives."""

    requests: int
    micro_batches: int
    tokens_per_s: float

    @property
    def text(self) -> str:
        """Return "8 micro-batches of 2", "3 micro-batches of 2 or 3"."""
        sizes = sorted(set(micro_batch_sizes(self.requests, self.micro_batches)))
        batches = "1 micro-batch" if self.micro_batches == 1 else f"{self.micro_batches} micro-batches"
        return f"{batches} of {' or '.join(map(str, sizes))}"


@dataclass(frozen=True)
class Bound:
    """What bandwidth allows at one concurrency: all requests in one micro-batch that goes round alone, one request in
    each micro-batch, and the best filling there is. Without a pipeline the three are one."""

    serial: Filling
    one_each: Filling
    best: Filling


def distinct_experts(experts: int, active: int, tokens: int) -> float:
    """Expected number of different experts that ``tokens`` tokens touch when each picks ``active`` uniformly.

    >>> round(distinct_experts(384, 8, 1), 1), round(distinct_experts(384, 8, 16), 1)
    (8.0, 109.8)
    """
    return experts * (1 - (1 - active / experts) ** tokens) if experts else 0.0


def layer_read_bytes(layer: Layer, tokens: int, *, tp_size: int, kv_bytes: float, context_tokens: float) -> float:
    """Bytes one rank reads for one decode step of ``tokens`` requests in one layer."""
    experts = layer.expert * distinct_experts(layer.experts, layer.active, tokens)
    seen = context_tokens if layer.window is None else min(context_tokens, layer.window)
    weights = (layer.attention + layer.dense + experts) / tp_size + layer.attention_replicated + layer.router
    return weights + tokens * seen * kv_bytes


def stage_read_bytes(
    shape: ModelShape,
    *,
    tp_size: int,
    pp_size: int,
    tokens: int,
    context_tokens: float = 0,
    partition: Sequence[int] | str | None = None,
    kv_cache_dtype: str = "auto",
) -> tuple[float, ...] | None:
    """Bytes one rank of each stage reads for one micro-batch of ``tokens`` requests; the last also reads the head."""
    kv_bytes = shape.kv_bytes(tp_size=tp_size, kv_cache_dtype=kv_cache_dtype)
    if shape.layers is None or shape.head_bytes is None or kv_bytes is None:
        return None
    reads, start = [], 0
    for count in stage_layers(len(shape.layers), pp_size, partition):
        stage = shape.layers[start : start + count]
        start += count
        reads.append(
            sum(
                layer_read_bytes(layer, tokens, tp_size=tp_size, kv_bytes=kv_bytes, context_tokens=context_tokens)
                for layer in stage
            )
        )
    reads[-1] += shape.head_bytes / tp_size
    return tuple(reads)


def fill_tokens_per_s(
    stages: Sequence[Sequence[float]], sizes: Sequence[int], bandwidth_gb_s: float | Sequence[float], *, even: bool
) -> float:
    """Tokens per second when micro-batches of these sizes go round a pipeline.

    ``stages[size]`` = bytes each stage reads for a micro-batch of that size; the bandwidth is one figure, or one per
    stage. A round lasts as long as the busiest stage needs for all micro-batches, and at least as long as the slowest
    micro-batch needs for all stages.
    """
    depth = len(stages[sizes[0]])
    speeds = [bandwidth_gb_s] * depth if isinstance(bandwidth_gb_s, (int, float)) else list(bandwidth_gb_s)
    if even:
        # The best split gives each stage work in proportion to its speed; then only the mean speed counts.
        rounds = [sum(stages[size]) / fmean(speeds) for size in sizes]
        busiest = sum(rounds) / depth
    else:
        rounds = [sum(read / speed for read, speed in zip(stages[size], speeds, strict=True)) for size in sizes]
        busiest = max(sum(stages[size][rank] for size in sizes) / speeds[rank] for rank in range(depth))
    return sum(sizes) / (max(busiest, *rounds) / BYTES_PER_GB)


def stage_bandwidths(cards: Sequence[float], *, tp_size: int, pp_size: int) -> tuple[float, ...] | None:
    """Return the bandwidth of each stage from that of each card, in rank order: its slowest card holds back the others.

    >>> stage_bandwidths([1600, 1500, 1700, 1700], tp_size=2, pp_size=2)
    (1500, 1700)
    """
    if len(cards) != tp_size * pp_size or min(cards, default=0) <= 0:
        return None
    return tuple(min(cards[stage * tp_size : (stage + 1) * tp_size]) for stage in range(pp_size))


def micro_batch_sizes(requests: int, micro_batches: int) -> tuple[int, ...]:
    """Spread requests over micro-batches as evenly as whole numbers allow.

    >>> micro_batch_sizes(16, 6)
    (2, 2, 3, 3, 3, 3)
    """
    base, extra = divmod(requests, micro_batches)
    return (base,) * (micro_batches - extra) + (base + 1,) * extra


def bound(
    shape: ModelShape,
    *,
    tp_size: int,
    pp_size: int,
    concurrency: int,
    bandwidth_gb_s: float | Sequence[float] | None,
    context_tokens: float = 0,
    partition: Sequence[int] | str | None = None,
    kv_cache_dtype: str = "auto",
) -> Bound | None:
    """Return the fillings that matter at a concurrency; None where shape or bandwidth is unknown.

    ``bandwidth_gb_s`` is that of every card, or one per stage.
    Without ``partition`` the stages count as even (the hardware's bound); with one, as split (this server's bound).
    """
    if bandwidth_gb_s is None or concurrency < 1 or (isinstance(bandwidth_gb_s, (int, float)) and bandwidth_gb_s <= 0):
        return None
    if shape.num_layers is None or not 1 <= pp_size <= shape.num_layers or tp_size < 1:
        return None
    stages: list[tuple[float, ...]] = [()]
    for tokens in range(1, concurrency + 1):
        reads = stage_read_bytes(
            shape,
            tp_size=tp_size,
            pp_size=pp_size,
            tokens=tokens,
            context_tokens=context_tokens,
            partition=partition,
            kv_cache_dtype=kv_cache_dtype,
        )
        if reads is None:
            return None
        stages.append(reads)

    def filling(requests: int, count: int) -> Filling:
        sizes = micro_batch_sizes(requests, count)
        return Filling(requests, count, fill_tokens_per_s(stages, sizes, bandwidth_gb_s, even=partition is None))

    # More than two micro-batches per stage only read the weights more often.
    candidates = (
        filling(requests, count) for requests in range(1, concurrency + 1) for count in range(1, min(requests, 2 * pp_size) + 1)
    )
    best = max(candidates, key=lambda one: one.tokens_per_s)
    return Bound(serial=filling(concurrency, 1), one_each=filling(concurrency, concurrency), best=best)
