# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The memory plan for people: a bar per stage, what is left for the cache, and what was not counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .roofline import BYTES_PER_GB

BAR = 40


def gigabytes(value: float | None) -> str:
    return "–" if value is None else f"{value / BYTES_PER_GB:.1f} GB"


def as_text(report: Mapping[str, Any]) -> str:
    """Return the plan for people."""
    fraction = report["mem_fraction_static"]
    origin = report["mem_fraction_static_source"]
    lines = [
        f"{report['architecture']}: {gigabytes(report['weights_bytes'])} of weights, "
        f"pp_size {report['pp_size']}, tp_size {report['tp_size']}, KV cache {report['kv_cache_dtype']}",
        f"mem_fraction_static {fraction if fraction is not None else 'unknown'}" + (f" ({origin})" if origin else ""),
        "",
        f"{'stage':>5} {'layers':>6} {'weights':>9} {'KV/token':>9} {'KV room':>9} {'KV tokens':>10}",
    ]
    for stage in report["stages"]:
        kv = "–" if stage["kv_bytes_per_token"] is None else f"{stage['kv_bytes_per_token']:,.0f} B"
        tokens = "–" if stage["kv_tokens"] is None else f"{stage['kv_tokens']:,}"
        mark = "  tightest" if stage["pp_rank"] == report["tightest_stage"] and len(report["stages"]) > 1 else ""
        lines.append(
            f"{stage['pp_rank']:>5} {stage['layers']:>6} {gigabytes(stage['weights_bytes']):>9} {kv:>9} "
            f"{gigabytes(stage['kv_pool_bytes']):>9} {tokens:>10}  {_bar(stage, report)}{mark}"
        )
    if report["card_bytes"]:
        lines.append(f"{'':>54}# weights, + KV cache, . left for everything else")
    lines += ["", *_verdict(report)]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    lines.append(f"not counted: {', '.join(report['not_counted'])}")
    known = [
        f"{row['bound_tokens_per_s']:.0f} at {row['concurrency']}"
        for row in report["bounds"]
        if row["bound_tokens_per_s"] is not None
    ]
    lines.append(
        f"bound: {', '.join(known)} in flight [tok/s]" if known else "bound: unknown (gpu_bandwidth_gb_s is not in the facts)"
    )
    return "\n".join(lines)


def _bar(stage: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """One card, BAR marks wide; weights beyond the card are cut off and end in ``>``."""
    card: float | None = report["card_bytes"]
    if not card:
        return ""
    weights: int = round(stage["weights_bytes"] / card * BAR)
    if weights > BAR:
        return "#" * BAR + ">"
    pool: int = max(0, round((report["static_bytes"] or 0) / card * BAR) - weights)
    return "#" * weights + "+" * pool + "." * (BAR - weights - pool)


def _verdict(report: Mapping[str, Any]) -> list[str]:
    tightest = report["stages"][report["tightest_stage"]]
    if report["fits"] is False:
        limit = report["static_bytes"] or report["card_bytes"]
        return [
            f"does not fit: stage {tightest['pp_rank']} needs {gigabytes(tightest['weights_bytes'])} per card, "
            f"{gigabytes(limit)} are there"
        ]
    if report["fits"] is None:
        return ["unknown whether it fits: gpu_memory_mib is not in the facts"]
    free = report["card_bytes"] - tightest["weights_bytes"]
    lines = [f"fits: the tightest stage leaves {gigabytes(free)} of a card beside its weights"]
    if report["kv_tokens"] is None:
        lines.append("KV tokens: unknown, SGLang computes --mem-fraction-static at start; give it in ARGV, or --source to see it")
    else:
        lines.append(f"KV tokens: {report['kv_tokens']:,} (what the heaviest stage leaves, by the stage with most layers)")
    return lines
