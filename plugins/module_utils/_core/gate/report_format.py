# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How values are written in reports: absent is a dash and never 0, all text is escaped, unlisted arguments are left out."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

ABSENT = "–"
# Resolved arguments a report may show. /server_info also carries keys and passwords, so nothing else is printed.
SHOWN_ARGUMENTS = frozenset(
    """
    attention_backend attn_dp_size chunked_prefill_size context_length cuda_graph_backend_decode cuda_graph_backend_prefill
    cuda_graph_bs cuda_graph_bs_decode cuda_graph_config cuda_graph_max_bs cuda_graph_max_bs_decode decode_attention_backend
    device disable_cuda_graph disable_custom_all_reduce disable_decode_cuda_graph disable_overlap_schedule
    disable_prefill_cuda_graph disable_radix_cache dp_size dtype enable_cache_report enable_dp_attention
    enable_dynamic_chunking enable_metrics enable_mis enable_mixed_chunk ep_size incremental_streaming_output kv_cache_dtype
    load_format max_prefill_tokens max_running_requests max_total_tokens mem_fraction_static model_path moe_runner_backend
    nnodes page_size pp_async_batch_depth pp_max_micro_batch_size pp_size prefill_attention_backend quantization
    reasoning_parser revision sampling_backend schedule_policy served_model_name speculative_algorithm stream_interval
    tool_call_parser tp_size trust_remote_code watchdog_timeout
    """.split()  # noqa: SIM905 - a hundred quoted names would hide the list
)


def number(value: Any) -> float | None:
    """Return a finite number, None for anything else: JSON may hold NaN, and a bool is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        return None
    return float(value)


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list, nothing else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> list[str]:
    """Return the texts in a list, nothing else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def escape(value: Any) -> str:
    """Return text safe inside HTML text and double-quoted attributes; absent is a dash."""
    return ABSENT if value is None else html.escape(str(value), quote=True)


def figure(value: Any, digits: int | None = None, unit: str = "") -> str:
    """Return a number for people: three or four significant digits unless ``digits`` says how many decimals.

    >>> figure(None), figure(0), figure(35.6012), figure(1234.5), figure(0.254, 2), figure(28.1, 1, "ms")
    ('–', '0', '35.6', '1,234', '0.25', '28.1 ms')
    """
    real = number(value)
    if real is None:
        return ABSENT
    if digits is None:
        digits = 0 if real == 0 or abs(real) >= 1000 or real == int(real) else 1 if abs(real) >= 10 else 2
    text = f"{real:,.{digits}f}"
    return f"{text} {unit}" if unit else text


def percent(value: Any, digits: int = 0) -> str:
    """Return a ratio as per cent, or a dash.

    >>> percent(0.2432), percent(None)
    ('24 %', '–')
    """
    real = number(value)
    return ABSENT if real is None else f"{100 * real:.{digits}f} %"


def interval(bounds: Any) -> str:
    """Return "[low … high]" without brackets, or a dash unless both ends are numbers. Ends that differ look different.

    >>> interval([95.1, 96.02]), interval([24.68, 24.71]), interval([1200.4, 1300]), interval([0, 0.277]), interval(None)
    ('95.1 … 96.0', '24.68 … 24.71', '1,200 … 1,300', '0.00 … 0.28', '–')
    """
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or any(number(end) is None for end in bounds):
        return ABSENT
    largest = max(abs(end) for end in bounds)
    digits = 2 if largest < 2 else 1 if largest < 1000 else 0
    for more in (digits, digits + 1, digits + 2):
        low, high = figure(bounds[0], more), figure(bounds[1], more)
        if low != high:
            break
    return f"{low} … {high}"


def share_interval(bounds: Any) -> str:
    """Return an interval of shares in per cent, or a dash.

    >>> share_interval([0.961, 0.99])
    '96 % … 99 %'
    """
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or any(number(end) is None for end in bounds):
        return ABSENT
    return f"{percent(bounds[0])} … {percent(bounds[1])}"


def shown_arguments(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments a report may print: those on the list, dotted parts of them included."""
    return {key: value for key, value in sorted(resolved.items()) if str(key).partition(".")[0] in SHOWN_ARGUMENTS}


def sentence(text: Any) -> str | None:
    """Return text with a capital at the start and a full stop; units stay with their number."""
    words = str(text).strip() if text is not None else ""
    if not words:
        return None
    for unit in ("%", "tok/s", "ms", "µs", "W", "×"):
        words = words.replace(f" {unit}", f"\u00a0{unit}")
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?" else ".")


def bound_ratio(point: Mapping[str, Any]) -> float | None:
    """Return measured / bound of one point."""
    speed, bound = number(point.get("output_tokens_per_s")), number(point.get("bound_tokens_per_s"))
    return None if speed is None or not bound else speed / bound


def largest_room(points: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one sentence about the point that leaves most of its bound on the table; none where none leaves much.

    >>> points = [{"concurrency": 1, "output_tokens_per_s": 35, "bound_tokens_per_s": 48, "headroom": "passes, but …"}]
    >>> largest_room([*points, {"concurrency": 8, "output_tokens_per_s": 9, "bound_tokens_per_s": 48, "headroom": None}])
    ['1 in flight: passes, but …']
    """
    rooms = [point for point in points if isinstance(point.get("headroom"), str)]
    most = min(rooms, key=lambda point: 1.0 if (ratio := bound_ratio(point)) is None else ratio, default=None)
    return [] if most is None else [f"{load_of(most)}: {most['headroom']}"]


def serial_bound(point: Mapping[str, Any]) -> float | None:
    """Return the bound when all requests share one micro-batch; None where that is the only filling there is.

    >>> serial_bound({"fillings": {"filled_tokens_per_s": 572, "serial_tokens_per_s": 138}})
    138.0
    >>> serial_bound({"fillings": {"filled_tokens_per_s": 48.5, "serial_tokens_per_s": 48.5}})
    """
    fillings = mapping(point.get("fillings"))
    serial, filled = number(fillings.get("serial_tokens_per_s")), number(fillings.get("filled_tokens_per_s"))
    return None if serial is None or (filled is not None and serial > 0.99 * filled) else serial


def load_of(point: Mapping[str, Any]) -> str:
    """Return what load a point put on.

    >>> load_of({"concurrency": 16}), load_of({"rate": 2.5, "concurrency": 40})
    ('16 in flight', '2.5 requests/s')
    """
    rate = number(point.get("rate"))
    return f"{figure(point.get('concurrency'))} in flight" if rate is None else f"{rate:g} requests/s"


def short_load(point: Mapping[str, Any]) -> str:
    """Return the load of a point as a table or an axis tells it.

    >>> short_load({"concurrency": 16}), short_load({"rate": 2.5, "concurrency": 40})
    ('16', '2.5/s')
    """
    rate = number(point.get("rate"))
    return figure(point.get("concurrency")) if rate is None else f"{rate:g}/s"


def speed_limit(point: Mapping[str, Any]) -> float | None:
    """Return the least tok/s that the limits of a point ask for, relative ones included; None when there is none."""
    speed, bound, needed = number(point.get("output_tokens_per_s")), number(point.get("bound_tokens_per_s")), []
    for limit in mappings(point.get("limits")):
        value, least = number(limit.get("value")), number(limit.get("limit"))
        if least is None:
            continue
        if limit.get("metric") == "min_output_tokens_per_s":
            needed.append(least)
        elif limit.get("metric") == "min_roofline_ratio" and bound is not None:
            needed.append(least * bound)
        elif limit.get("metric") == "min_ratio_to_promoted" and value and speed is not None:
            needed.append(least * speed / value)
    return max(needed, default=None)


def confidence_of(result: Mapping[str, Any]) -> str:
    """Return the confidence of the intervals as the plan states it."""
    confidence = number(mapping(result.get("plan")).get("confidence"))
    return "interval" if confidence is None else f"{percent(confidence)} interval"


ENDED = {
    "failed": "failed",
    "timed_out": "of them timed out",
    "short": "too short",
    "long": "too long",
    "uncounted": "without usage",
    "cancelled": "cut at the end",
}


def requests_ended(requests: Mapping[str, Any]) -> str:
    """Return how many of the requests that ran to their end were fine; those in flight when the window closed are apart.

    >>> requests_ended({"planned": 31, "ok": 24, "failed": 0, "cancelled": 7})
    '24 of 24, 7 cut at the end'
    >>> requests_ended({"planned": 3, "ok": 1, "failed": 2})
    '1 of 3, 2 failed'
    >>> requests_ended({"planned": 9, "ok": 7, "failed": 2, "timed_out": 1, "short": 3, "long": 1, "uncounted": 2})
    '7 of 9, 2 failed, 1 of them timed out, 3 too short, 1 too long, 2 without usage'
    """
    planned, cut = (number(requests.get(name)) for name in ("planned", "cancelled"))
    parts = [f"{figure(requests.get('ok'))} of {figure(None if planned is None else planned - (cut or 0))}"]
    counted = {name: number(requests.get(name)) for name in ENDED}
    return ", ".join(parts + [f"{figure(count)} {ENDED[name]}" for name, count in counted.items() if count])


def cached_share(point: Mapping[str, Any]) -> str:
    """Say which share of the prompts came from a cache, where it shows in per cent, and which may: a chat template may.

    >>> cached_share({"cached_tokens_ratio": 0.25, "cached_tokens_limit_ratio": 0.3})
    '25 % of the prompts cached, 30 % may be'
    >>> cached_share({"cached_tokens_ratio": 0.004})
    ''
    >>> cached_share({"cached_tokens_ratio": None})
    'cached share of the prompts unknown'
    """
    ratio, limit = (number(point.get(f"cached_tokens_{name}")) for name in ("ratio", "limit_ratio"))
    allowed = "" if limit is None else f", {percent(limit)} may be"
    if ratio is None:
        return "cached share of the prompts unknown"
    return f"{percent(ratio)} of the prompts cached{allowed}" if ratio >= 0.005 else ""


def limit_line(limit: Mapping[str, Any]) -> str:
    """Return one limit on one line: metric, value, interval, limit, sample count."""
    sign = "≥" if str(limit.get("metric", "")).startswith("min_") else "≤"
    ci = interval(limit.get("ci"))
    inner = f" ({ci})" if ci != ABSENT else ""
    metric = str(limit.get("metric") or "limit").removeprefix("min_").removeprefix("max_")
    return (
        f"{metric} {figure(limit.get('value'))}{inner}, needs {sign} {figure(limit.get('limit'))}, n = {figure(limit.get('n'))}"
    )
