# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two results side by side, or why they cannot be compared: a figure only means something beside its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .report_format import ABSENT, figure, interval, load_of, mapping, mappings, number
from .tables import aligned

CONDITIONS = ("input_tokens", "output_tokens", "temperature")
# How the load was put on, with what an older result that does not say it did.
MEANS = {"endpoint": "completions"}
IN_FLIGHT = "in flight"
LENGTH_TOLERANCE = 0.05
CACHE_TOLERANCE = 0.01


def compare_results(a: Mapping[str, Any], b: Mapping[str, Any], *, same_engine: bool = True) -> dict[str, Any]:
    """Return {"comparable", "refusals", "points", "lines"}. Never raises on content.

    Refused: other lengths, sampling, endpoint or prompts, other cache shares, other arrivals at one rate, other engine
    versions (unless that is the question: ``same_engine=False``), no load in common, a run that was not finished.
    The interval of a ratio is the quotient of opposite ends; a change is real when 1 lies outside.
    """
    refusals = _refusals(a, b, same_engine)
    pairs = _pairs(a, b)
    if others := _other_arrivals(a, b):
        refusals += others
    elif not pairs:
        refusals.append("no load (concurrency, or arrival rate) was measured in both")
    for old, new in pairs:
        refusals += _pair_refusals(old, new)
    points = [] if refusals else [_change(old, new) for old, new in pairs]
    lines = [f"cannot be compared: {refusal}" for refusal in refusals] or _lines(a, b, points)
    return {"comparable": not refusals, "refusals": refusals, "points": points, "lines": lines}


def _refusals(a: Mapping[str, Any], b: Mapping[str, Any], same_engine: bool) -> list[str]:
    found = []
    plans = [mapping(result.get("plan")) for result in (a, b)]
    for key in CONDITIONS:
        first, second = (number(plan.get(key)) for plan in plans)
        if first is None or first != second:
            found.append(f"{key}: {figure(first)} and {figure(second)}")
    for key, default in MEANS.items():
        ways = [default if plan.get(key) is None else plan[key] for plan in plans]
        if ways[0] != ways[1]:
            found.append(f"{key}: {ways[0]} and {ways[1]}")
    sets = [mapping(result.get("prompts")).get("digest") for result in (a, b)]
    if sets[0] != sets[1]:
        found.append("prompts: other ones, of a file")
    versions = [mapping(result.get("engine")).get("version") for result in (a, b)]
    if same_engine and versions[0] != versions[1]:
        found.append(f"engine version: {versions[0]} and {versions[1]}")
    found += [f"{name} was not finished" for name, result in (("A", a), ("B", b)) if result.get("finished") is not True]
    return found


def _pairs(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Points of the same load: so many requests in flight, or so many per second."""
    news = {load: point for point in mappings(b.get("points")) if (load := _load(point)) is not None}
    return [(point, news[load]) for point in mappings(a.get("points")) if (load := _load(point)) is not None and load in news]


def _load(point: Mapping[str, Any]) -> tuple[float, str] | None:
    rate, concurrency = number(point.get("rate")), number(point.get("concurrency"))
    if rate is not None:
        return rate, str(point.get("arrivals"))
    return None if concurrency is None else (concurrency, IN_FLIGHT)


def _other_arrivals(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Poisson arrivals come in bursts, constant ones never: at the same rate they are different loads."""
    first, second = ({load for point in mappings(each.get("points")) if (load := _load(point))} for each in (a, b))
    return [
        f"{rate:g} requests/s: arrivals {kind} and {other}"
        for rate, kind in sorted(first - second)
        for again, other in sorted(second - first)
        if rate == again and IN_FLIGHT not in (kind, other)
    ]


def _pair_refusals(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    found, head = [], load_of(old)
    if not all(number(point.get("output_tokens_per_s")) for point in (old, new)):
        return [f"{head}: nothing measured in one of them"]
    for key in ("input_tokens", "output_tokens"):
        first, second = (number(mapping(point.get(key)).get("mean")) for point in (old, new))
        if first is None or second is None or abs(first - second) > LENGTH_TOLERANCE * max(first, second):
            found.append(f"{head}: real {key} {figure(first)} and {figure(second)}")
    first, second = (number(point.get("cached_tokens_ratio")) for point in (old, new))
    differs = (first is None) != (second is None)
    if differs or (first is not None and second is not None and abs(first - second) > CACHE_TOLERANCE):
        found.append(f"{head}: cached share {figure(first)} and {figure(second)}")
    return found


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    word, ends, (low, high), (least, most) = "no interval to tell noise from change", None, _ends(old), _ends(new)
    if low is not None and high is not None and least is not None and most is not None and 0 < low <= high:
        ends = [least / high, most / low]
        word = "faster" if ends[0] > 1 else "slower" if ends[1] < 1 else "within noise"
    a, b = old["output_tokens_per_s"], new["output_tokens_per_s"]
    points = {"rate": old.get("rate"), "arrivals": old.get("arrivals"), "concurrency": old.get("concurrency")}
    figures = {"a": a, "a_ci": old.get("ci"), "b": b, "b_ci": new.get("ci"), "ratio": b / a, "ratio_ci": ends}
    return {**points, **figures, "word": word}


def _ends(point: Mapping[str, Any]) -> tuple[float | None, float | None]:
    ci = point.get("ci")
    return (number(ci[0]), number(ci[1])) if isinstance(ci, list) and len(ci) == 2 else (None, None)


def _lines(a: Mapping[str, Any], b: Mapping[str, Any], points: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"{name}: {result.get('verdict')}, {result.get('started_at')}, SGLang {mapping(result.get('engine')).get('version')}"
        for name, result in (("A", a), ("B", b))
    ]
    measured = [("load", "A tok/s", "interval", "B tok/s", "interval")]
    changes = [("load", "B / A", "interval", "change", "")]
    for point in points:
        a_figures = figure(point["a"], 1), interval(point["a_ci"])
        measured.append((load_of(point), *a_figures, figure(point["b"], 1), interval(point["b_ci"])))
        ends = ABSENT if point["ratio_ci"] is None else "{:.3f} … {:.3f}".format(*point["ratio_ci"])
        changes.append((load_of(point), f"{point['ratio']:.3f}", ends, f"{100 * (point['ratio'] - 1):+.1f} %", point["word"]))
    return [*lines, *aligned(measured, left=(0,)), *aligned(changes, left=(0, 4))]
