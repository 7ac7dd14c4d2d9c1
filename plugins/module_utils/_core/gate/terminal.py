# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The result of a gate for a terminal of 80 columns: a table of the points, then why, what caused it, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .report_answers import TITLES
from .report_format import (
    ABSENT,
    bound_ratio,
    figure,
    interval,
    largest_room,
    mapping,
    mappings,
    number,
    percent,
    short_load,
    speed_limit,
    texts,
)
from .tables import aligned, folded

HEAD = ("load", "tok/s", "interval", "limit", "of bound", "TTFT ms", "TPOT ms", "verdict")


def table(result: Mapping[str, Any]) -> list[str]:
    """Return a line of heads and one per point: medians of the latencies, the least tok/s that the limits ask for.

    What was not known at any point has no column.
    """
    rows = [cells(point) for point in mappings(result.get("points"))]
    if not rows:
        return []
    known = [any(row[place] for row in rows) for place in range(len(HEAD))]
    shown = [[cell or ABSENT if known[place] else "" for place, cell in enumerate(row)] for row in rows]
    return aligned([[head if known[place] else "" for place, head in enumerate(HEAD)], *shown], left=(0, len(HEAD) - 1))


def cells(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a table tells of a point, below HEAD; empty where it is not known."""
    return (
        short_load(point),
        _speed(point.get("output_tokens_per_s")),
        _known(interval(point.get("ci"))),
        _known(_speed(speed_limit(point))),
        _known(percent(bound_ratio(point))),
        _known(figure(mapping(point.get("ttft_ms")).get("p50"), 0)),
        _known(figure(mapping(point.get("tpot_ms")).get("p50"), 1)),
        str(point.get("verdict")),
    )


def summary(result: Mapping[str, Any], out: Path) -> str:
    """Return what a person reads at the end of a run, the verdict first and the way to the report last."""
    simulated = " (simulated engine: nothing was measured on a GPU)" if mapping(result.get("engine")).get("simulated") else ""
    lines = [f"verdict: {result.get('verdict')}{simulated}", *table(result)]
    for key, title in TITLES.items():
        probe = mapping(mapping(result.get("correctness")).get(key))
        if "items" in probe:
            lines.append(f"{title}: {figure(probe.get('right'))} of {figure(probe.get('items'))} right, {probe.get('verdict')}")
    for reason in texts(result.get("reasons")):
        lines += folded("why:   ", reason)
    for item in mappings(result.get("diagnosis")):
        lines += folded("cause: ", f"{item.get('code')}: {item.get('message')}")
        lines += folded("do:    ", str(item.get("do")))
    for note in largest_room(mappings(result.get("points"))) + texts(result.get("notes")):
        lines += folded("note:  ", note)
    if any(number(point.get("bound_tokens_per_s")) is not None for point in mappings(result.get("points"))):
        lines += folded("bound: ", "; ".join(texts(mapping(result.get("bound")).get("assumptions"))))
    return "\n".join([*lines, f"report: {out / 'report.html'}"])


def _speed(value: Any) -> str:
    return figure(value, 1 if (number(value) or 0) < 1000 else 0)


def _known(text: str) -> str:
    return "" if text == ABSENT else text
