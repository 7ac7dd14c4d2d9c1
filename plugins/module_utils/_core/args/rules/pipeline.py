# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pipeline stages against the cards of the host and the layers of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import InferopsError
from ...topology.stages import PARTITION_ENV, partition_entries, stage_layers
from ..context import Context
from ..findings import Finding
from ..flags import UNKNOWN

DEPTH = "pp_async_batch_depth"


def size_of(ctx: Context, name: str) -> int | None:
    value = ctx.effective(name)
    value = ctx.asked(name) if value is UNKNOWN or value is None else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def async_depth(ctx: Context) -> Iterator[Finding]:
    """Advise to measure an asynchronous depth where a pipeline has none. Depth 0 is not wrong by itself."""
    pp_size = size_of(ctx, "pp_size")
    if pp_size is None or pp_size < 2 or DEPTH not in ctx.table.fields or ctx.asked(DEPTH) != 0:
        return
    spelled = ctx.parsed.explicit.get(DEPTH) or ctx.parsed.explicit.get("pp_size")
    slots = ctx.line("srt/managers/scheduler_pp_mixin.py", "pp_size", DEPTH)
    yield Finding(
        "SGA310",
        "advice",
        f"{DEPTH} is 0: the {pp_size} stages share {pp_size} micro-batch slots, and results are exchanged after each pass",
        flag=ctx.spelled(DEPTH),
        where=ctx.place(spelled),
        why=f"SGLang keeps pp_size + {DEPTH} slots{f' [{slots}]' if slots else ''}; with a depth of 1 or more it exchanges "
        "results before the pass, so that card and host work overlap. Whether that helps here only a measurement tells",
        do=f"gate once with {ctx.table.spell(DEPTH)} {pp_size} beside it, or accept SGA310 with the measurement as the reason",
        source=ctx.table.field_source.get(DEPTH),
        position=ctx.position(spelled),
    )


def cards(ctx: Context) -> Iterator[Finding]:
    """Compare the cards the ranks of one node need with the cards the host has."""
    have = ctx.facts.gpu_count
    sizes = [size_of(ctx, name) for name in ("tp_size", "pp_size", "nnodes")]
    if have is None or ctx.asked("device") == "cpu" or any(size is None or size < 1 for size in sizes):
        return
    tp_size, pp_size, nodes = (int(size or 1) for size in sizes)
    replicas = 1 if ctx.asked("enable_dp_attention") is True else max(size_of(ctx, "dp_size") or 1, 1)
    world = tp_size * pp_size * replicas
    if world % nodes:
        return  # the release refuses that by itself
    need = world // nodes
    shape = f"tp_size {tp_size} × pp_size {pp_size}" + (f" × dp_size {replicas}" if replicas > 1 else "")
    shape += f" over {nodes} nodes" if nodes > 1 else ""
    spelled = ctx.parsed.explicit.get("pp_size") or ctx.parsed.explicit.get("tp_size")
    common = ctx.at(spelled)
    if need > have:
        yield Finding(
            "SGA401",
            "error",
            f"{shape} needs {need} cards, the host has {have}",
            why="each rank takes a card of its own; the server would fail when the ranks start",
            do=f"choose sizes whose product is {have}" + (" per node" if nodes > 1 else ""),
            **common,
        )
    elif need < have and not any(name in ctx.parsed.explicit for name in ("base_gpu_id", "gpu_id_step")):
        yield Finding(
            "SGA402",
            "advice",
            f"{shape} uses {need} of the {have} cards of the host; {have - need} {'stays' if have - need == 1 else 'stay'} idle",
            why="their memory and bandwidth are not used, and the others must hold more layers each",
            do=f"choose sizes whose product is {have}, or accept SGA402 with the reason the cards are left free",
            **common,
        )


def layer_split(ctx: Context) -> Iterator[Finding]:
    """Check that the layers of the model can be split over the stages as asked (R18)."""
    pp_size, layers = size_of(ctx, "pp_size"), _layer_count(ctx.model_config)
    partition = ctx.env.get(PARTITION_ENV)
    if pp_size is None or pp_size < 2:
        return
    try:
        if partition is not None:
            partition_entries(pp_size, partition)
        if layers is None:
            return
        stage_layers(layers, pp_size, partition)
    except InferopsError as exc:
        spelled = ctx.parsed.explicit.get("pp_size")
        yield Finding(
            "SGA403",
            "error",
            exc.what,
            flag=spelled,
            where=PARTITION_ENV if partition is not None else ctx.place(spelled),
            why=exc.why,
            do=exc.do,
            source=ctx.line("srt/distributed/utils.py", "def get_pp_indices"),
            position=ctx.position(spelled),
        )


def _layer_count(config: Any) -> int | None:
    for part in (config, (config or {}).get("text_config"), (config or {}).get("llm_config")) if config else ():
        value = part.get("num_hidden_layers") if isinstance(part, dict) else None
        if isinstance(value, int):
            return value
    return None
