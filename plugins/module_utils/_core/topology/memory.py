# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the weights fit each pipeline stage, and how many tokens of cache are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InferopsError
from ..units import BYTES_PER_MIB
from .model import ModelShape
from .stages import stage_layers


@dataclass(frozen=True)
class StageMemory:
    """Bytes of one card of a stage. None = not told by what was given."""

    pp_rank: int
    layers: int
    weights_bytes: float
    kv_bytes_per_token: float | None
    static_bytes: float | None
    """What --mem-fraction-static gives to weights and cache together."""

    @property
    def kv_pool_bytes(self) -> float | None:
        return None if self.static_bytes is None else self.static_bytes - self.weights_bytes

    @property
    def kv_tokens(self) -> int | None:
        if self.kv_pool_bytes is None or not self.kv_bytes_per_token:
            return None
        return max(0, int(self.kv_pool_bytes // self.kv_bytes_per_token))


@dataclass(frozen=True)
class MemoryPlan:
    stages: tuple[StageMemory, ...]
    card_bytes: float | None

    @property
    def tightest(self) -> StageMemory:
        """The stage with the most weights: it sets the size of the cache for all."""
        return max(self.stages, key=lambda stage: stage.weights_bytes)

    @property
    def kv_tokens(self) -> int | None:
        """Tokens the whole pipeline can cache: the smallest over the stages, None while one is unknown."""
        tokens = [stage.kv_tokens for stage in self.stages]
        return None if any(count is None for count in tokens) else min(count for count in tokens if count is not None)

    @property
    def fits(self) -> bool | None:
        """False when a stage's weights exceed its part of the card, or the card; None when that cannot be told."""
        limits = [stage.static_bytes if stage.static_bytes is not None else self.card_bytes for stage in self.stages]
        if any(limit is None for limit in limits):
            return None
        return all(stage.weights_bytes < (limit or 0) for stage, limit in zip(self.stages, limits, strict=True))


def plan_memory(
    shape: ModelShape,
    *,
    tp_size: int = 1,
    pp_size: int = 1,
    partition: Sequence[int] | str | None = None,
    gpu_memory_mib: int | None = None,
    mem_fraction_static: float | None = None,
    kv_cache_dtype: str = "auto",
) -> MemoryPlan:
    """Return weights and cache room of every stage, by one card of it.

    The embedding lies on the first stage, the head on the last. Raises InferopsError, naming what is missing, when
    the weights cannot be counted from the config.
    """
    if shape.layers is None or shape.embedding_bytes is None or shape.head_bytes is None:
        raise InferopsError(
            f"cannot count the weights of {shape.architecture or 'this model'}",
            where="config.json",
            why="unknown: " + (", ".join(shape.unknown) or "hidden_size, vocab_size or torch_dtype"),
            do="give a complete config.json; for an architecture not known here, take the sizes from its checkpoint",
        )
    card = None if gpu_memory_mib is None else float(gpu_memory_mib * BYTES_PER_MIB)
    static = None if card is None or mem_fraction_static is None else card * mem_fraction_static
    kv_layer = shape.kv_bytes(tp_size=tp_size, kv_cache_dtype=kv_cache_dtype)
    stages, start = [], 0
    for rank, count in enumerate(stage_layers(len(shape.layers), pp_size, partition)):
        weights = sum(layer.held(tp_size) for layer in shape.layers[start : start + count])
        start += count
        if rank == 0:
            weights += shape.embedding_bytes / tp_size
        if rank == pp_size - 1 and not (shape.head_tied and pp_size == 1):
            weights += shape.head_bytes / tp_size
        stages.append(StageMemory(rank, count, weights, None if kv_layer is None else kv_layer * count, static))
    return MemoryPlan(tuple(stages), card)
