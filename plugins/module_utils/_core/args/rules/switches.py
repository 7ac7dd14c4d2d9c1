# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flags that change nothing: what holds anyway, what the release forces in any case, what a stronger flag wins over.

Off-switches are judged by taking them away, all at once, which costs one resolution of the rest of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..context import Context, effective, shown
from ..findings import Finding
from ..flags import UNKNOWN
from .graphs import asked_off


def off_switches(ctx: Context) -> Iterator[Finding]:
    """Tell of each off-switch whether it decides anything here, or the release does the same without it."""
    if ctx.resolution.outcome != "ok":
        return
    graphs = asked_off(ctx)
    asked = [name for name in ctx.parsed.explicit if _is_off_switch(ctx, name) and name not in graphs]
    asked = [name for name in asked if ctx.effective(name) is True]
    without = ctx.resolve(ctx.without(*asked)) if asked else None
    if without is None or without.outcome != "ok":
        return
    for name in asked:
        then = effective(without, name, ctx.table)
        if then is not UNKNOWN:
            yield _forced(ctx, name, without) if then is True else _deciding(ctx, name)


def _is_off_switch(ctx: Context, name: str) -> bool:
    """Whether a field is a switch that turns something off that is on by default, and it was thrown."""
    return name.startswith("disable_") and ctx.asked(name) is True and ctx.table.default_of(name) is False


def _forced(ctx: Context, name: str, without: Any) -> Finding:
    change = without.changed.get(name, {})
    spelled = ctx.parsed.explicit[name]
    because = ", ".join(word for word in change.get("because") or [] if word)
    return Finding(
        "SGA303",
        "info",
        f"{spelled} is redundant: SGLang {ctx.table.version} turns this off anyway"
        + (f" because of {because}" if because else ""),
        why=f"without the flag {name} comes out as true, too" + (f", where {change['guard']}" if change.get("guard") else ""),
        do=f"remove {spelled}: the next release may not need it, and the flag would then cost what it turns off",
        source=change.get("source"),
        **ctx.at(spelled),
    )


def _deciding(ctx: Context, name: str) -> Finding:
    spelled = ctx.parsed.explicit[name]
    what = name.removeprefix("disable_").replace("_", " ")
    return Finding(
        "SGA304",
        "info",
        f"{spelled} alone turns {what} off: SGLang {ctx.table.version} would leave it on for the rest of this command line",
        why="resolved without the off-switches it stays on; one left over from hunting a fault costs what it turns off",
        do=f"remove {spelled} if nobody knows what it is for",
        source=ctx.table.field_source.get(name),
        **ctx.at(spelled),
    )


def without_effect(ctx: Context) -> Iterator[Finding]:
    """Name in one finding the flags that ask for what is the default anyway."""
    same = [
        spelled
        for name, spelled in ctx.parsed.explicit.items()
        if name in ctx.table.fields and _is_default(ctx, name) and name not in ctx.resolution.changed
    ]
    if same:
        yield Finding(
            "SGA305",
            "info",
            f"{', '.join(same)} {'asks' if len(same) == 1 else 'ask'} for the default of SGLang {ctx.table.version}",
            why="it holds without the flag, until a release changes the default",
            do="keep it to be sure of the value, or remove it",
            **ctx.at(same[0]),
        )


def _is_default(ctx: Context, name: str) -> bool:
    default, asked = ctx.table.default_of(name), ctx.asked(name)
    return default is not UNKNOWN and default is not None and asked == default and type(asked) is type(default)


def overruled_graphs(ctx: Context) -> Iterator[Finding]:
    """Name an off-switch of decode graphs that a stronger flag wins over: they run in spite of it."""
    if ctx.resolution.outcome != "ok" or "cuda_graph_config" not in ctx.table.fields:
        return
    backend = ctx.effective("cuda_graph_config.decode.backend")
    asked = asked_off(ctx)
    if not asked or backend is UNKNOWN or backend == "disabled":
        return
    stronger = [ctx.spelled(name) for name in ("cuda_graph_config", "cuda_graph_backend_decode") if _names(ctx, name)]
    if not stronger:
        return
    switch, spelled = next(iter(asked.items()), ("", ""))
    first = spelled.partition(" ")[0]
    yield Finding(
        "SGA306",
        "info",
        f"{spelled} has no effect on decode: {stronger[0]} wins, and decode graphs run ({shown(backend)})",
        why="SGLang takes the JSON setting first, then the flag of the phase, then the off-switches",
        do=f"remove {spelled}; prefill graphs follow it still, see the resolved settings",
        source=ctx.table.field_source.get(switch),
        **ctx.at(first),
    )


def _names(ctx: Context, name: str) -> bool:
    value = ctx.asked(name)
    if name == "cuda_graph_config":
        return isinstance(value, dict) and "backend" in (value.get("decode") or {})
    return name in ctx.parsed.explicit and value != "disabled"
