# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flags that parse, but not as a reader expects: deprecated, abbreviated, one field set twice."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context, is_secret
from ..findings import Finding
from ..parser import Use
from ..versions import ambiguous_from, history
from .graphs import LEGACY


def deprecated(ctx: Context) -> Iterator[Finding]:
    """Name each flag the release calls deprecated, with what it says to use instead."""
    for use in ctx.parsed.uses:
        flag = use.flag
        if not flag.deprecated:
            continue
        nothing = flag.action == "deprecated"
        yield Finding(
            "SGA120",
            "deprecated",
            f"{use.spelled} is deprecated in SGLang {ctx.table.version}" + (" and has no effect" if nothing else ""),
            why=_fate(use.spelled),
            do=_replacement(use),
            source=flag.source,
            **ctx.at(use.spelled),
        )


def _fate(flag: str) -> str:
    span = (history().get(flag) or (None,))[-1]
    gone = f"SGLang {span.gone} removes it" if span and span.gone else "a later release removes it"
    return f"{gone}; the command line that works today then stops at parsing"


def _replacement(use: Use) -> str:
    flag = use.flag
    if flag.action == "deprecated":
        return "remove it"
    if flag.new_flag is None:
        return f"the release says: {flag.help}"
    if flag.dest == LEGACY:
        return f"remove it (SGA301); {flag.new_flag}, which the release names instead, costs the same"
    return f"use {flag.new_flag} instead"


def abbreviated(ctx: Context) -> Iterator[Finding]:
    """Name each flag written as a prefix (R101: ``--tp 1`` works, until a release adds another flag that starts like it)."""
    for use in ctx.parsed.uses:
        full = ctx.table.in_full(use.spelled, use.flag)
        if full == use.spelled:
            continue
        later = ambiguous_from(use.spelled, ctx.table.version)
        yield Finding(
            "SGA111",
            "advice" if later else "info",
            f"{use.spelled} is short for {full}" + (f", and ambiguous from SGLang {later[0]} on" if later else ""),
            why=f"there it could mean {', '.join(later[1])}, and the server would not start"
            if later
            else "a release that adds a flag with the same beginning makes it ambiguous, and the server then does not start",
            do=f"write {full}",
            source=use.flag.source,
            **ctx.at(use.spelled),
        )


def twice(ctx: Context) -> Iterator[Finding]:
    """Name each field set more than once: SGLang silently takes the last one."""
    seen: dict[str, Use] = {}
    for use in ctx.parsed.uses:
        earlier = seen.get(use.field)
        seen[use.field] = use
        if earlier is None or use.flag.action == "deprecated" or (earlier.value == use.value and earlier.spelled == use.spelled):
            continue
        same = earlier.value == use.value
        yield Finding(
            "SGA110",
            "info" if same else "advice",
            f"{use.field} is set twice, by {earlier.spelled} and by {use.spelled}"
            + ("" if same else f"; the last one{'' if is_secret(use.field) else f', {use.value},'} wins"),
            why="SGLang takes the last one and says nothing",
            do="keep one of them",
            source=use.flag.source,
            **ctx.at(use.spelled),
        )
