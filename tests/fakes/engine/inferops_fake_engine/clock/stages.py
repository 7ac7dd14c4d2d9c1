"""How long one pass of a micro-batch takes on one pipeline stage."""

from __future__ import annotations

from dataclasses import dataclass

from .parameters import Parameters


@dataclass(frozen=True)
class Stage:
    """One pipeline stage; ``slowdown`` > 1 makes a bad card (a degraded link, a throttled clock)."""

    layers: int
    dense_layers: int
    has_head: bool
    graph_max_batch: int  # decode batches above it run without graphs; 0: none has a graph
    tp_size: int
    slowdown: float
    parameters: Parameters

    def memory_ms(self, requests: int) -> float:
        """Time in which this stage's card streams weights for one decode pass [ms]."""
        p = self.parameters
        moe = (self.layers - self.dense_layers) * (p.shared_gb + p.experts_gb * p.expert_spread(requests))
        gigabytes = self.layers * p.attention_gb + self.dense_layers * p.dense_gb + moe + (p.head_gb if self.has_head else 0.0)
        return p.milliseconds(gigabytes / self.tp_size) * self.slowdown

    def decode_ms(self, requests: int) -> float:
        """Time from input to output of one decode pass [ms]: this is what a lone stream waits for."""
        p = self.parameters
        launch = 0.0 if requests <= self.graph_max_batch else self.layers * p.launch_ms_per_layer
        reduce = self.layers * p.allreduce_ms_per_layer if self.tp_size > 1 else 0.0
        return self.memory_ms(requests) * p.kernel_factor + launch + reduce

    def prefill_ms(self, tokens: int) -> float:
        p = self.parameters
        return (p.prefill_base_ms + tokens * p.prefill_ms_per_token / self.tp_size) * self.slowdown


def build_stages(
    *,
    num_layers: int,
    pp_size: int,
    tp_size: int = 1,
    graphs: bool,
    graph_max_batch: int = 256,
    parameters: Parameters,
    slowdown: dict[int, float] | None = None,
) -> tuple[Stage, ...]:
    """Split the layers as SGLang does: evenly, the last ``num_layers % pp_size`` stages hold one more.

    Source: SGLang srt/distributed/utils.py, get_pp_indices.
    """
    base, extra = divmod(num_layers, pp_size)
    slow = slowdown or {}
    largest = graph_max_batch if graphs else 0
    stages, placed = [], 0
    for rank in range(pp_size):
        layers = base + (rank >= pp_size - extra)
        dense = min(layers, max(0, parameters.dense_layers - placed))
        stages.append(Stage(layers, dense, rank == pp_size - 1, largest, tp_size, slow.get(rank, 1.0), parameters))
        placed += layers
    return tuple(stages)
