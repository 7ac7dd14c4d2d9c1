# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What must be true of the running server, compared with what these arguments result in."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InferopsError
from ..context import Context, shown
from ..findings import Finding
from ..flags import UNKNOWN, FlagTable
from .graphs import DECODE, LEGACY, OFF, PREFILL, decode_graphs

SWITCHES = ("enabled", "disabled")


def read_expect(expect: Mapping[str, Any], table: FlagTable) -> dict[str, Any]:
    """Check the keys of an expectation: decode_graphs, prefill_graphs, or a field of the release, nested ones dotted."""
    out = {}
    for key, value in expect.items():
        if key in ("decode_graphs", "prefill_graphs"):
            word = {True: "enabled", False: "disabled"}.get(value, value) if isinstance(value, bool) else value
            if word not in SWITCHES:
                raise InferopsError(f"expect.{key} is {value!r}", where=f"expect.{key}", do="write enabled or disabled")
            out[key] = word
            continue
        if key.partition(".")[0] not in table.fields:
            near = difflib.get_close_matches(key, ["decode_graphs", "prefill_graphs", *table.fields], n=1)
            raise InferopsError(
                f"nothing of SGLang {table.version} is called {key}",
                where=f"expect.{key}",
                why="an expectation that cannot be compared would never fail",
                do=f"write {near[0]}" if near else "use a field name of this release",
            )
        out[key] = value
    return out


def expected(ctx: Context, expect: Mapping[str, Any]) -> Iterator[Finding]:
    """Report each expectation the arguments contradict or leave undecided."""
    if ctx.resolution.outcome == "fatal":
        return
    for key, wanted in read_expect(expect, ctx.table).items():
        name, value = _effective(ctx, key)
        if value is UNKNOWN:
            yield Finding(
                "SGA502",
                "unknown",
                f"whether {key} will be {shown(wanted)} is not decided",
                where=f"expect.{key}",
                why="it depends on facts not given, or on what the source alone does not tell",
                do="the proof after start compares it with the running server",
                source=ctx.table.field_source.get(name.partition(".")[0]),
            )
        elif value != wanted:
            change = ctx.resolution.changed.get(name, {})
            spelled = ctx.parsed.explicit.get(name)
            because = ", ".join(word for word in change.get("because") or [] if word)
            yield Finding(
                "SGA501",
                "error",
                f"{key} is expected to be {shown(wanted)}, these arguments result in {shown(value)}",
                flag=spelled,
                where=f"expect.{key}",
                why=f"SGLang {ctx.table.version} sets it" + (f" because of {because}" if because else "")
                if change
                else (f"{spelled} asks for it" if spelled else "it is the default of this release"),
                do="change the arguments, or the expectation",
                source=change.get("source") or ctx.table.field_source.get(name.partition(".")[0]),
                position=ctx.position(spelled),
            )


def unjudged(expect: Mapping[str, Any]) -> Iterator[Finding]:
    """Say of each expectation that nothing here compares it."""
    for key, wanted in expect.items():
        yield Finding(
            "SGA502",
            "unknown",
            f"whether {key} will be {shown(wanted)} is not judged",
            where=f"expect.{key}",
            why="the source of this release cannot be read here",
            do="the proof after start compares it with the running server",
        )


def _effective(ctx: Context, key: str) -> tuple[str, Any]:
    if key == "decode_graphs":
        graphs = decode_graphs(ctx.resolution, ctx.table)
        name = DECODE if "cuda_graph_config" in ctx.table.fields else LEGACY
        return name, UNKNOWN if graphs is None else SWITCHES[0] if graphs else SWITCHES[1]
    if key == "prefill_graphs":
        value = ctx.effective(PREFILL) if "cuda_graph_config" in ctx.table.fields else UNKNOWN
        return PREFILL, UNKNOWN if value is UNKNOWN else SWITCHES[1] if value == OFF else SWITCHES[0]
    return key, ctx.effective(key)
