# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How decoder layers are split over pipeline stages."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InferopsError

PARTITION_ENV = "SGLANG_PP_LAYER_PARTITION"


def stage_layers(num_layers: int, pp_size: int, partition: Sequence[int] | str | None = None) -> tuple[int, ...]:
    """Return how many decoder layers each pipeline stage holds.

    Takes num_layers [layers] >= pp_size [stages] >= 1, and the value of SGLANG_PP_LAYER_PARTITION when it is set
    (text such as "8,8,8" or a list), else raises InferopsError.
    Returns a tuple of length pp_size, index = pp_rank [layers]; sums to num_layers;
    without a partition the last ``num_layers % pp_size`` stages hold one more.
    Source: SGLang srt/distributed/utils.py, get_pp_indices (0.5.9 … 0.5.23).

    >>> stage_layers(61, 8)
    (7, 7, 7, 8, 8, 8, 8, 8)
    >>> stage_layers(61, 8, "8,8,8,8,8,7,7,7")
    (8, 8, 8, 8, 8, 7, 7, 7)
    """
    if not 1 <= pp_size <= num_layers:
        raise InferopsError(
            f"pp_size {pp_size} cannot split {num_layers} layers",
            where="pp_size",
            why="a stage would hold no layer",
            do=f"choose pp_size in 1..{num_layers}",
        )
    if partition is None or partition == "":
        base, extra = divmod(num_layers, pp_size)
        return (base,) * (pp_size - extra) + (base + 1,) * extra
    return _given(num_layers, pp_size, partition)


def partition_entries(pp_size: int, partition: str) -> tuple[int, ...]:
    """Return the entries of SGLANG_PP_LAYER_PARTITION as the server reads it from the environment, where empty is not unset.

    Raises InferopsError where they are not pp_size whole numbers. Source: get_pp_indices (0.4.6 … 0.5.23).
    """
    try:
        entries = tuple(int(word) for word in partition.split(","))
    except ValueError:
        entries = ()
    if len(entries) == pp_size:
        return entries
    raise InferopsError(
        f"{PARTITION_ENV}={partition} does not fit {pp_size} stages",
        where=PARTITION_ENV,
        why=f"it has {len(entries)} entries, pp_size is {pp_size}" if entries else "it is not a comma list of whole numbers",
        do=f"leave it unset or write {pp_size} numbers that sum to the layers of the model",
    )


def _given(num_layers: int, pp_size: int, partition: Sequence[int] | str) -> tuple[int, ...]:
    words = partition.split(",") if isinstance(partition, str) else list(partition)
    try:
        layers = tuple(int(word) for word in words)
    except ValueError:
        layers = ()
    if len(layers) != pp_size or sum(layers) != num_layers or min(layers, default=0) < 1:
        if not layers:
            why = "it is not a comma list of whole numbers"
        elif len(layers) != pp_size:
            why = f"it has {len(layers)} entries, pp_size is {pp_size}"
        elif sum(layers) != num_layers:
            why = f"it sums to {sum(layers)}, the model has {num_layers} layers"
        else:
            why = "a stage would hold no layer"
        default = ",".join(str(count) for count in stage_layers(num_layers, pp_size))
        text = partition if isinstance(partition, str) else ",".join(str(word) for word in partition)
        raise InferopsError(
            f"{PARTITION_ENV}={text} does not fit {num_layers} layers on {pp_size} stages",
            where=PARTITION_ENV,
            why=why,
            do=f"leave it unset or write {pp_size} numbers that sum to {num_layers}, such as {default}",
        )
    return layers
