# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules that follow a request on its way: client, network, queue, KV pool, prompt, scheduler, kernels that are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .diagnosis_evidence import Finding, Observed, finding, number, numbers, part, requests_per_s

CLIENT_BUSY_RATIO = 0.85
LATE_RATIO = 0.10
"""Share of a request's time that passes outside the engine."""
QUEUE_RATIO = 0.15
KV_FULL_RATIO = 0.90
STALL_RATIO = 0.03
IDLE_CARDS = 0.5
"""Cards busy during a stall, all together: below it, nothing is computed anywhere."""
PREFILL_RATIO = 0.25
SCHEDULER_RATIO = 0.35
ALIKE_RATIO = 0.9
"""Stages that differ by less are told together."""
LEAST_READINGS = 8
"""Readings of the engine's counters that a window must hold before its means say anything."""


def client(seen: Observed) -> Finding | None:
    """The load client's own processor sets the pace."""
    point, busy = _most(seen, _client_busy)
    if point is None or busy < CLIENT_BUSY_RATIO:
        return None
    return finding(
        "GATE-CLIENT",
        f"the load client sets the pace: its processor is busy {100 * busy:.0f} % of the time at {_load(point)}",
        "run the client on a machine with free processors, with more client_processes, or with fewer requests in flight; "
        "its figure is not the server's",
        lost=max(_late(point) or 0.0, busy),
        concurrency=point.get("concurrency"),
        client_cpu_ratio=busy,
        outside_engine_ratio=_late(point),
    )


def network(seen: Observed) -> Finding | None:
    """Answers spend time between engine and client, and the client has time to read them."""
    point, late = _most(seen, _late)
    if point is None or late < LATE_RATIO or (_client_busy(point) or 0.0) >= CLIENT_BUSY_RATIO:
        return None
    theirs, ours = number(part(point, "engine").get("e2e_ms")), number(part(point, "client").get("e2e_mean_ms"))
    host = part(point, "host")
    return finding(
        "GATE-NETWORK",
        f"answers are late on their way: at {_load(point)} the engine is done after {theirs:.0f} ms, the client after {ours:.0f} "
        f"ms ({100 * late:.0f} % of the time lies between them)",
        "measure from the server's own host; look for a proxy that buffers, a slow link, segments that are sent again",
        lost=late,
        concurrency=point.get("concurrency"),
        engine_e2e_ms=theirs,
        client_e2e_ms=ours,
        outside_engine_ratio=late,
        link_ratio=number(host.get("link_ratio")),
        resent_segments_per_s=number(host.get("resent_segments_per_s")),
    )


def queue(seen: Observed) -> Finding | None:
    """Requests wait for a place although the KV pool has room."""
    point, share = _most(seen, _queue_share)
    if point is None or share < QUEUE_RATIO or _pressed(point):
        return None
    engine = part(point, "engine")
    waiting, batch = number(engine.get("queued_reqs")), number(engine.get("decode_batch"))
    shown = "" if batch is None else f", in micro-batches of {batch:.1f} on average"
    return finding(
        "GATE-QUEUE",
        f"requests queue: at {_load(point)} they wait {number(engine.get('queue_ms')):.0f} ms for a place, {100 * share:.0f} % "
        f"of their time in the engine{shown}",
        "there are fewer places than requests: raise max_running_requests (with a pipeline also pp_max_micro_batch_size or the "
        "number of slots), or send fewer at once",
        lost=share,
        concurrency=point.get("concurrency"),
        queue_ms=number(engine.get("queue_ms")),
        queue_ratio=share,
        queued_reqs=waiting,
        decode_batch=batch,
        kv_used_ratio=number(engine.get("kv_used_ratio")),
    )


def kv_pressure(seen: Observed) -> Finding | None:
    """The KV pool is full: requests wait for room in it, or are thrown out and read again."""
    found = [(_queue_share(point) or 0.0, point) for point in seen.points if _pressed(point)]
    share, point = max(found, key=lambda pair: pair[0], default=(0.0, None))
    if point is None:
        return None
    engine = part(point, "engine")
    retracted, used = number(engine.get("retracted")), number(engine.get("kv_used_ratio"))
    thrown = f"; {retracted:.0f} requests were retracted and their context read again" if retracted else ""
    return finding(
        "GATE-KV",
        f"the KV pool is too small for {_load(point)}: it is {100 * (used or 0.0):.0f} % full, requests wait {100 * share:.0f} % "
        f"of their time{thrown}",
        "more room for the cache (mem_fraction_static, kv_cache_dtype, another layer split), shorter contexts, or fewer at once",
        lost=max(share, QUEUE_RATIO),
        concurrency=point.get("concurrency"),
        kv_used_ratio=used,
        retracted=retracted,
        queue_ratio=share,
    )


def compilation(seen: Observed) -> Finding | None:
    """The engine stands still with requests in it, and no card computes: a kernel is compiled."""
    point, share = _most(seen, lambda point: number(part(point, "stalls").get("ratio")))
    stalls = part(point, "stalls")
    cards = number(stalls.get("busy_cards"))
    if point is None or share < STALL_RATIO or cards is None or cards > IDLE_CARDS:
        return None
    count, longest = number(stalls.get("count")) or 0.0, number(stalls.get("longest_s")) or 0.0
    return finding(
        "GATE-COMPILE",
        f"the engine stood still {count:.0f} times for {100 * share:.0f} % of the window at {_load(point)}, {longest:.1f} s "
        "at most, with requests in it and no card at work: kernels are compiled while it serves",
        "keep the kernel caches where the service may write and they outlive it, warm up every shape, then gate again",
        lost=share,
        concurrency=point.get("concurrency"),
        stalls=count,
        longest_s=longest,
        stalled_ratio=share,
        busy_cards=cards,
        busiest_core_ratio=number(stalls.get("busiest_core_ratio")),
    )


def prefill(seen: Observed) -> Finding | None:
    """Requests spend their time on having their prompts read."""
    point, share = _most(seen, _prefill_share)
    if point is None or share < PREFILL_RATIO:
        return None
    ttft = number(part(point, "engine").get("ttft_ms")) or 0.0
    return finding(
        "GATE-PREFILL",
        f"prompts hold the server up: at {_load(point)} the first token takes {ttft:.0f} ms in the engine, {100 * share:.0f} % "
        "of the whole answer, without the wait for a place",
        "look at the back end that reads prompts, chunked_prefill_size and the prompt lengths; a prefix cache or servers for "
        "prompts alone take this work away from decode",
        lost=share,
        concurrency=point.get("concurrency"),
        engine_ttft_ms=ttft,
        prefill_ratio=share,
        input_tokens=number(part(point, "input_tokens").get("mean")),
    )


def scheduler(seen: Observed) -> Finding | None:
    """Between passes the scheduler's own work holds a stage, and the cards wait for it."""
    found: list[tuple[float, int, Mapping[str, Any]]] = []
    for point in seen.points:
        host = numbers(part(point, "engine").get("stage_host_ratio"))
        if host and _read_enough(point) and isinstance(point.get("concurrency"), int) and point["concurrency"] > 1:
            found.append((max(host), host.index(max(host)), point))
    if not found or max(share for share, *dummy in found) < SCHEDULER_RATIO:
        return None
    share, stage, point = max(found, key=lambda item: item[0])
    host, forward = (numbers(part(point, "engine").get(f"stage_{name}_ratio")) for name in ("host", "forward"))
    passes = forward[stage] if forward and stage < len(forward) else None
    beside = "" if passes is None else f", passes {100 * passes:.0f} %"
    all_alike = host is not None and len(host) > 1 and min(host) >= ALIKE_RATIO * share
    where = "every stage" if all_alike else seen.stage_name(stage)
    return finding(
        "GATE-SCHEDULER",
        f"the scheduler's own work holds the cards up: at {_load(point)} it takes {100 * share:.0f} % of the time of "
        f"{where}{beside}",
        "faster processors, governor performance, no other work on those cores, NUMA binding; fewer requests per micro-batch or "
        "more async depth, so that it is hidden behind passes: measure each",
        lost=share,
        concurrency=point.get("concurrency"),
        stage=None if all_alike else stage,
        stage_host_ratio=host,
        stage_forward_ratio=forward,
    )


def _most(seen: Observed, value: Any) -> tuple[Mapping[str, Any] | None, float]:
    """The point at which a value is largest, and the value; points at which it is unknown do not count."""
    found = [(known, point) for point in seen.points if (known := value(point)) is not None]
    if not found:
        return None, 0.0
    share, point = max(found, key=lambda pair: pair[0])
    return point, share


def _client_busy(point: Mapping[str, Any]) -> float | None:
    """Busy share of the client's processor while there was anything to read: stalls of the engine are left out."""
    busy, stalled = number(part(point, "client").get("cpu_ratio")), number(part(point, "stalls").get("ratio")) or 0.0
    return None if busy is None or stalled >= 1 else min(busy / (1 - stalled), 1.0)


def _late(point: Mapping[str, Any]) -> float | None:
    """Share of a request's time outside the engine; None unless both clocks were read."""
    theirs, ours = number(part(point, "engine").get("e2e_ms")), number(part(point, "client").get("e2e_mean_ms"))
    return None if theirs is None or not ours or not _read_enough(point) else 1 - theirs / ours


def _queue_share(point: Mapping[str, Any]) -> float | None:
    engine = part(point, "engine")
    waits, whole = number(engine.get("queue_ms")), number(engine.get("e2e_ms"))
    return None if waits is None or not whole or not _read_enough(point) else min(waits / whole, 1.0)


def _pressed(point: Mapping[str, Any]) -> bool:
    engine = part(point, "engine")
    used, retracted = number(engine.get("kv_used_ratio")), number(engine.get("retracted"))
    waits = _queue_share(point)
    return bool(retracted) or (used is not None and used >= KV_FULL_RATIO and waits is not None and waits >= QUEUE_RATIO)


def _prefill_share(point: Mapping[str, Any]) -> float | None:
    engine = part(point, "engine")
    first, waits, whole = (number(engine.get(name)) for name in ("ttft_ms", "queue_ms", "e2e_ms"))
    if first is None or not whole or not _read_enough(point) or requests_per_s(point) is None:
        return None
    return max(first - (waits or 0.0), 0.0) / whole


def _read_enough(point: Mapping[str, Any]) -> bool:
    return (number(part(point, "engine").get("readings")) or 0.0) >= LEAST_READINGS


def _load(point: Mapping[str, Any]) -> str:
    rate = point.get("rate")
    return f"{rate:g} requests/s" if isinstance(rate, (int, float)) else f"{point.get('concurrency')} in flight"
