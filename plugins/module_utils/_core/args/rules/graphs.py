# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Decode CUDA graphs switched off on the command line (R7, R11): what it costs, and whether anything forces it.

The flag is judged by taking it away: the rest of the command line is resolved again, so that "nothing else forces graphs off"
or "this forces them off anyway" is a statement about this release and these arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..context import Context, effective, shown
from ..findings import Finding
from ..flags import UNKNOWN
from ..parser import Parsed

DECODE = "cuda_graph_config.decode.backend"
PREFILL = "cuda_graph_config.prefill.backend"
LEGACY = "disable_cuda_graph"
OFF = "disabled"
# One field report: Kimi K2.6, eight RTX PRO 6000, eight pipeline stages, one request at a time.
COST = "on eight RTX PRO 6000 with Kimi K2.6 in eight stages one request ran at 24.7 instead of 35.6 tokens/s"


def decode_graphs(resolution: Any, table: Any) -> bool | None:
    """Return whether decode runs in graphs; None where the check cannot decide it."""
    if "cuda_graph_config" in table.fields:
        backend = effective(resolution, DECODE)
        return None if backend is UNKNOWN else backend != OFF
    off = effective(resolution, LEGACY)
    return None if off is UNKNOWN else not off


def asked_off(ctx: Context) -> dict[str, str]:
    """Return {field: flag as spelled} of what on the command line asks for decode without graphs."""
    out = {}
    for name in (LEGACY, "disable_decode_cuda_graph"):
        if name in ctx.parsed.explicit and ctx.asked(name) is True:
            out[name] = ctx.parsed.explicit[name]
    if ctx.asked("cuda_graph_backend_decode") == OFF and "cuda_graph_backend_decode" in ctx.parsed.explicit:
        out["cuda_graph_backend_decode"] = f"{ctx.parsed.explicit['cuda_graph_backend_decode']} {OFF}"
    config = ctx.asked("cuda_graph_config")
    if isinstance(config, dict) and isinstance(config.get("decode"), dict) and config["decode"].get("backend") == OFF:
        out["cuda_graph_config"] = f"{ctx.spelled('cuda_graph_config')} (decode backend {OFF})"
    return out


def switched_off(ctx: Context) -> Iterator[Finding]:
    """Report decode graphs switched off by flags, or forced off by the release because of other flags."""
    if ctx.resolution.outcome == "fatal" or ctx.asked("device") == "cpu":  # a processor has no CUDA graphs to lose
        return
    asked = asked_off(ctx)
    now = decode_graphs(ctx.resolution, ctx.table)
    if not asked:
        if now is False:
            yield from _forced(ctx)
        return
    if now is True:
        return  # a stronger flag keeps decode graphs on; SGA120 still names the leftover
    without = ctx.resolve(_take_away(ctx, asked))
    spelled = " and ".join(asked.values())
    first = next(iter(asked.values()), "").partition(" ")[0]
    flag = ctx.table.by_string(first)
    yield Finding(
        "SGA301",
        "error",
        f"{spelled} runs decode without CUDA graphs: every step launches its kernels one by one from the host",
        why=f"{_verdict(ctx, without, spelled)}. What it costs: {COST}",
        do=_instead(ctx, without, spelled),
        source=flag.source if flag else ctx.table.field_source.get(next(iter(asked), "")),
        **ctx.at(first),
    )


def _take_away(ctx: Context, asked: dict[str, str]) -> Parsed:
    rest = ctx.without(*[name for name in asked if name != "cuda_graph_config"])
    if "cuda_graph_config" in asked:
        config = {phase: dict(settings) for phase, settings in rest.values["cuda_graph_config"].items()}
        config["decode"].pop("backend")
        values = dict(rest.values) | {"cuda_graph_config": config}
        rest = Parsed(values, rest.explicit, rest.uses)
    return rest


def _forcing(resolution: Any) -> dict[str, Any]:
    for name in (DECODE, LEGACY):
        if name in resolution.changed:
            return dict(resolution.changed[name])
    return {}


def _verdict(ctx: Context, without: Any, spelled: str) -> str:
    graphs = decode_graphs(without, ctx.table)
    release = f"SGLang {ctx.table.version}"
    if without.outcome == "fatal":
        return f"without {spelled} {release} refuses this command line: {without.message} [{without.source}]"
    if graphs is None:
        entries = [entry for entry in without.undecided if entry["field"] in (DECODE, LEGACY, "cuda_graph_config")]
        needs = sorted({need for entry in entries for need in entry.get("needs") or ()})
        places = sorted({str(entry["source"]) for entry in entries if entry.get("source")})
        return (
            f"whether anything else in {release} forces decode graphs off here is not decided"
            + (f" [{', '.join(places)}]" if places else "")
            + (f"; it depends on {', '.join(needs)}" if needs else "")
        )
    if graphs:
        return f"the flag is vestigial: nothing in {release} forces decode graphs off for this command line"
    change = _forcing(without)
    because = ", ".join(change.get("because") or [])
    cause = f" because of {because}" if because else ""
    guard = f" where {change['guard']}" if change.get("guard") else ""
    return f"the flag is redundant: {release} forces decode graphs off anyway{cause}{guard} [{change.get('source')}]"


def _instead(ctx: Context, without: Any, spelled: str) -> str:
    graphs = decode_graphs(without, ctx.table)
    if graphs is False:
        because = ", ".join(_forcing(without).get("because") or []) or "what forces them off"
        return f"remove {spelled}; to have decode graphs, change {because}"
    return f"remove {spelled}; to keep it, accept SGA301 with a reason, which is kept in the release record"


def _forced(ctx: Context) -> Iterator[Finding]:
    change = _forcing(ctx.resolution)
    because = [word for word in change.get("because") or [] if word.startswith("-") and word in ctx.parsed.explicit.values()]
    because = [word for word in because if word != ctx.parsed.explicit.get("model_path")]
    if not because:
        return  # the platform or the model does without graphs, nothing on the command line to blame
    yield Finding(
        "SGA302",
        "advice",
        f"SGLang {ctx.table.version} runs decode without CUDA graphs because of {', '.join(because)}",
        why=f"it sets {DECODE if DECODE in ctx.resolution.changed else LEGACY} to {shown(change['to'])}"
        + (f" where {change['guard']}" if change.get("guard") else "")
        + f". What it costs: {COST}",
        do=f"do without {', '.join(because)}, or accept SGA302 with a reason",
        source=change.get("source"),
        **ctx.at(because[0]),
    )
