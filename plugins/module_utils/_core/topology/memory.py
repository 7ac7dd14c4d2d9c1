# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the weights fit each pipeline stage, and how many tokens of cache are left.

SGLang sizes the cache as (free memory after loading) − (free memory before) × (1 − mem_fraction_static), both the least over
all ranks, divided by the cache bytes of a token on the rank, then the least over the stages: _profile_available_bytes and
_apply_token_constraints in srt/mem_cache/kv_cache_configurator.py:2990, :3098 (0.5.23), srt/model_executor/
model_runner_kv_cache_mixin.py:62 (0.5.12). So the heaviest stage and the stage with most layers bound it together. What is in
use before loading (CUDA context, NCCL) is not known here and taken as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import InferopsError
from ..units import BYTES_PER_MIB
from .model import ModelShape
from .split import best_split
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
        """Tokens this stage alone has room for."""
        if self.kv_pool_bytes is None or not self.kv_bytes_per_token:
            return None
        return max(0, int(self.kv_pool_bytes // self.kv_bytes_per_token))


@dataclass(frozen=True)
class BetterSplit:
    """Another layer split, no stage longer than now, and the tokens it caches."""

    layers: tuple[int, ...]
    kv_tokens: int


@dataclass(frozen=True)
class MemoryPlan:
    stages: tuple[StageMemory, ...]
    card_bytes: float | None
    page_tokens: int = 1
    max_total_tokens: int | None = None
    better: BetterSplit | None = None

    @property
    def tightest(self) -> StageMemory:
        """The stage with the most weights: it sets the size of the cache for all."""
        return max(self.stages, key=lambda stage: stage.weights_bytes)

    @property
    def kv_tokens(self) -> int | None:
        """Tokens the whole pipeline caches, whole pages, at most max_total_tokens; None where that cannot be told."""
        per_token = [stage.kv_bytes_per_token for stage in self.stages]
        pool = self.tightest.kv_pool_bytes
        if pool is None or any(not size for size in per_token):
            return None
        tokens = max(0, int(pool // max(size for size in per_token if size)))
        if self.max_total_tokens is not None:
            tokens = min(tokens, self.max_total_tokens)
        return tokens // self.page_tokens * self.page_tokens

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
    attention_tp: int | None = None,
    page_tokens: int = 1,
    max_total_tokens: int | None = None,
) -> MemoryPlan:
    """Return weights and cache room of every stage, by one card of it.

    The embedding lies on the first stage, the head on the last, a vision tower on each. attention_tp: ranks that share one copy
    of attention and cache, less than tp_size under DP attention. Raises InferopsError, naming what is missing, when the weights
    cannot be counted from the config.
    """
    if shape.layers is None or shape.embedding_bytes is None or shape.head_bytes is None:
        raise InferopsError(
            f"cannot count the weights of {shape.architecture or 'this model'}",
            where="config.json",
            why="unknown: " + (", ".join(shape.unknown) or "hidden_size, vocab_size or torch_dtype"),
            do="give a complete config.json; for an architecture not known here, take the sizes from its checkpoint",
        )
    attention_tp = attention_tp or tp_size
    card = None if gpu_memory_mib is None else float(gpu_memory_mib * BYTES_PER_MIB)
    static = None if card is None or mem_fraction_static is None else card * mem_fraction_static
    kv_layer = shape.kv_bytes(tp_size=attention_tp, kv_cache_dtype=kv_cache_dtype)
    held = [layer.held(tp_size, attention_tp) for layer in shape.layers]
    first = shape.embedding_bytes / attention_tp
    last = 0.0 if shape.head_tied and pp_size == 1 else shape.head_bytes / tp_size
    vision = shape.vision_held(tp_size)

    def planned(split: Sequence[int]) -> MemoryPlan:
        stages, start = [], 0
        for rank, count in enumerate(split):
            layers_bytes = sum(held[start : start + count])
            weights = vision + layers_bytes + (first if rank == 0 else 0) + (last if rank == pp_size - 1 else 0)
            start += count
            stages.append(StageMemory(rank, count, weights, None if kv_layer is None else kv_layer * count, static))
        return MemoryPlan(tuple(stages), card, page_tokens, max_total_tokens)

    split = stage_layers(len(shape.layers), pp_size, partition)
    plan = planned(split)
    if static is None or not kv_layer or pp_size == 1:
        return plan
    layers = best_split(
        held,
        pp_size=pp_size,
        room_bytes=static - vision,
        kv_bytes=kv_layer,
        most_layers=max(split),
        first_bytes=first,
        last_bytes=last,
    )
    if layers is None:
        return plan
    more = planned(layers).kv_tokens or 0
    return replace(plan, better=BetterSplit(layers, more)) if more > (plan.kv_tokens or 0) else plan
