# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The layer split that leaves most room for the cache, without making a stage longer than it is."""

from __future__ import annotations

from collections.abc import Sequence


def best_split(
    weights: Sequence[float],
    *,
    pp_size: int,
    room_bytes: float,
    kv_bytes: float,
    most_layers: int,
    first_bytes: float = 0.0,
    last_bytes: float = 0.0,
) -> tuple[int, ...] | None:
    """Return layers per stage for which the cache holds most tokens; None where no split leaves any.

    weights [bytes] of each layer on one card; room_bytes of one card for weights and cache; kv_bytes per token and layer;
    first_bytes and last_bytes lie on those stages beside their layers; most_layers bounds a stage, since a longer one is slower.
    The tokens are those of memory.py: what the heaviest stage leaves, by the cache of the stage with most layers.

    >>> best_split([2.0, 1.0, 1.0, 1.0], pp_size=2, room_bytes=10.0, kv_bytes=1.0, most_layers=3, last_bytes=2.0)
    (2, 2)
    """
    best: tuple[float, tuple[int, ...]] | None = None
    for longest in range(-(-len(weights) // pp_size), most_layers + 1):
        found = _lightest(weights, pp_size, longest, first_bytes, last_bytes)
        if found is None:
            continue
        heaviest, split = found
        tokens = (room_bytes - heaviest) / (kv_bytes * max(split))
        if tokens > 0 and (best is None or tokens > best[0]):
            best = tokens, split
    return best[1] if best is not None else None


def _lightest(
    weights: Sequence[float], pp_size: int, longest: int, first_bytes: float, last_bytes: float
) -> tuple[float, tuple[int, ...]] | None:
    """Return the split whose heaviest stage is lightest, no stage above ``longest``. Exact: over (stages, layers placed)."""
    count = len(weights)
    before = [0.0]
    for weight in weights:
        before.append(before[-1] + weight)
    reached: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for rank in range(pp_size):
        beside = (first_bytes if rank == 0 else 0.0) + (last_bytes if rank == pp_size - 1 else 0.0)
        following: dict[int, tuple[float, tuple[int, ...]]] = {}
        for placed, (heaviest, split) in reached.items():
            for layers in range(1, min(longest, count - placed - (pp_size - rank - 1)) + 1):
                end = placed + layers
                weight = max(heaviest, before[end] - before[placed] + beside)
                if end not in following or weight < following[end][0]:
                    following[end] = weight, (*split, layers)
        reached = following
    return reached.get(count)
