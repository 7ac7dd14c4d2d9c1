# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What engine, host and cards did in the window of a point, as the result tells it and the diagnosis reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..units import NS_PER_S, s_to_ns
from .engine_watch import HISTOGRAMS, EngineWatch, by_stage
from .folded import Over
from .load import PointLoad
from .metrics import e2e_ms

STALL_S = 0.5
HOST = ("cpu_ratio", "busiest_core_ratio", "client_cpu_ratio", "link_ratio", "resent_segments_per_s")
Span = tuple[int, int]


def engine_facts(seen: Over) -> dict[str, Any]:
    """Return the engine's own account of a window; every value may be None.

    ``decode_batch`` is tokens per decode pass: the mean size of a micro-batch.
    """
    seconds = seen.seconds
    means = {f"{name}_ms": _ratio(seen.gain(f"{name}_s"), seen.gain(f"{name}_n"), 1000.0) for name in HISTOGRAMS.values()}
    passes = _sum(seen.gain("decode_graph_passes"), seen.gain("decode_eager_passes"))
    made, first = seen.gain("generated_tokens"), seen.gain("ttft_n")
    decoded = None if made is None or first is None else max(made - first, 0.0)
    retracted = seen.gain("retracted_total")
    gauge = seen.most("retracted_reqs")
    return {
        "readings": seen.readings,
        "queued_reqs": _rounded(seen.mean("queued_reqs")),
        "kv_used_ratio": _rounded(seen.most("kv_used_ratio")),
        "retracted": retracted if retracted is not None else gauge,
        **{name: _rounded(value) for name, value in means.items()},
        "decode_batch": _rounded(_ratio(decoded, passes)),
        "stage_forward_ratio": _shares(by_stage(seen, "forward_s"), seconds),
        "stage_host_ratio": _shares(by_stage(seen, "host_s"), seconds),
    }


def beside_facts(
    watch: EngineWatch,
    windows: Sequence[Span],
    host: Callable[[Sequence[Span]], Over],
    busy: Callable[[Sequence[Span]], Sequence[float | None]],
    *,
    here: bool = True,
) -> dict[str, Any]:
    """Return what a point tells beside its figures: the client's machine, and stalls of the engine.

    Where the server is not ``here``, the client's processors say nothing about a stall.
    """
    return {"host": host_facts(host(windows)), "stalls": stall_facts(watch, windows, host if here else None, busy)}


def host_facts(seen: Over) -> dict[str, float | None]:
    """Return what the client's machine did in a window, means."""
    return {name: _rounded(seen.mean(name)) for name in HOST}


def client_e2e_ms(load: PointLoad) -> float | None:
    """Return the mean E2E of the window as the client saw it; the engine's own mean stands beside it."""
    values = [value for trace in load.window if trace.status == "ok" and (value := e2e_ms(trace)) is not None]
    return _rounded(sum(values) / len(values)) if values else None


def stall_facts(
    watch: EngineWatch,
    windows: Sequence[Span],
    host: Callable[[Sequence[Span]], Over] | None,
    busy: Callable[[Sequence[Span]], Sequence[float | None]],
) -> dict[str, Any] | None:
    """Return for how long the engine held requests and ended no pass, and what cards and host did meanwhile; None for never."""
    spans = [
        (begin, end)
        for begin, end in watch.still
        if end - begin >= s_to_ns(STALL_S) and any(a <= begin and end <= b for a, b in windows)
    ]
    if not spans:
        return None
    # The pass under way at either end has nothing to do with the stall itself.
    inner = [(begin + (end - begin) // 4, end - (end - begin) // 8) for begin, end in spans]
    cards = busy(inner)
    known = [value for value in cards if value is not None]
    return {
        "count": len(spans),
        "longest_s": _rounded(max(end - begin for begin, end in spans) / NS_PER_S),
        "ratio": _rounded(sum(end - begin for begin, end in spans) / max(sum(b - a for a, b in windows), 1)),
        "busy_cards": _rounded(sum(known)) if known and len(known) == len(cards) else None,
        "busiest_core_ratio": None if host is None else _rounded(host(inner).mean("busiest_core_ratio")),
    }


def _shares(seconds: Sequence[float] | None, whole: float) -> list[float] | None:
    return None if seconds is None or not whole else [round(value / whole, 4) for value in seconds]


def _ratio(part: float | None, whole: float | None, factor: float = 1.0) -> float | None:
    return None if part is None or not whole else part / whole * factor


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
