# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two results side by side, or why they cannot be compared: a figure only means something beside its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONDITIONS = ("input_tokens", "output_tokens", "temperature")
LENGTH_TOLERANCE = 0.05
CACHE_TOLERANCE = 0.01


def compare_results(a: Mapping[str, Any], b: Mapping[str, Any], *, same_engine: bool = True) -> dict[str, Any]:
    """Return {"comparable", "refusals", "points", "lines"}.

    Refused: other lengths or sampling, other cache shares, other engine versions (unless that is the question:
    ``same_engine=False``), no concurrency in common, a run that was not finished. A change is real when intervals part.
    """
    refusals = _refusals(a, b, same_engine)
    pairs = _pairs(a, b)
    if not pairs:
        refusals.append("no concurrency was measured in both")
    for old, new in pairs:
        refusals += _pair_refusals(old, new)
    points = [] if refusals else [_change(old, new) for old, new in pairs]
    lines = [f"cannot be compared: {refusal}" for refusal in refusals]
    for point in points:
        change = f"{point['a']:.1f} -> {point['b']:.1f} tok/s ({point['ratio'] - 1:+.1%})"
        lines.append(f"concurrency {point['concurrency']:>3}: {change}, {point['word']}")
    return {"comparable": not refusals, "refusals": refusals, "points": points, "lines": lines}


def _refusals(a: Mapping[str, Any], b: Mapping[str, Any], same_engine: bool) -> list[str]:
    found = []
    plans = [result.get("plan") or {} for result in (a, b)]
    for key in CONDITIONS:
        first, second = (plan.get(key) for plan in plans)
        if first is None or first != second:
            found.append(f"{key}: {first} and {second}")
    versions = [(result.get("engine") or {}).get("version") for result in (a, b)]
    if same_engine and versions[0] != versions[1]:
        found.append(f"engine version: {versions[0]} and {versions[1]}")
    found += [f"{name} was not finished" for name, result in (("A", a), ("B", b)) if not result.get("finished")]
    return found


def _pairs(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    news = {point.get("concurrency"): point for point in b.get("points") or []}
    return [(point, news[point["concurrency"]]) for point in a.get("points") or [] if point.get("concurrency") in news]


def _pair_refusals(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    found, head = [], f"concurrency {old['concurrency']}"
    if old.get("output_tokens_per_s") is None or new.get("output_tokens_per_s") is None:
        return [f"{head}: nothing measured in one of them"]
    for key in ("input_tokens", "output_tokens"):
        first, second = ((point.get(key) or {}).get("mean") for point in (old, new))
        if first is None or second is None or abs(first - second) > LENGTH_TOLERANCE * max(first, second):
            found.append(f"{head}: real {key} {first} and {second}")
    first, second = (point.get("cached_tokens_ratio") for point in (old, new))
    if (first is None) != (second is None) or (first is not None and abs(first - second) > CACHE_TOLERANCE):
        found.append(f"{head}: cached share {first} and {second}")
    return found


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    word = "no interval to tell noise from change"
    if old.get("ci") and new.get("ci"):
        word = "within noise"
        if new["ci"][0] > old["ci"][1]:
            word = "faster"
        elif new["ci"][1] < old["ci"][0]:
            word = "slower"
    a, b = old["output_tokens_per_s"], new["output_tokens_per_s"]
    return {"concurrency": old["concurrency"], "a": a, "b": b, "ratio": b / a if a else float("nan"), "word": word}
