# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The reasons of all points together, each said once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .load_words import load_words
from .validity import check_passes
from .verdict import FAIL, INCONCLUSIVE


def point_reasons(points: list[dict[str, Any]], require: Mapping[str, float]) -> list[str]:
    """Return the reasons of the points for the whole run; what the plan requires everywhere is said once, not per point."""
    told = [
        (load_words(point), reason) for point in points if point["verdict"] in (FAIL, INCONCLUSIVE) for reason in point["reasons"]
    ]
    repeated = {name for name in require if sum(reason.startswith(f"{name}: ") for dummy, reason in told) > 1}
    whole = check_passes(graph_passes_of(points), {name: require[name] for name in repeated})
    once = {reason.partition(":")[0]: reason for reason in whole.wrong + whole.doubtful}
    places: dict[str, list[str]] = {}
    for at, reason in told:
        if reason.partition(":")[0] not in once:
            places.setdefault(reason, []).append(at)
    return [*once.values()] + [f"{_together(loads)}: {reason}" for reason, loads in places.items()]


def _together(loads: list[str]) -> str:
    """Return loads as one place.

    >>> _together(["concurrency 1", "concurrency 16"]), _together(["rate 2/s"]), _together(["rate 2/s", "concurrency 1"])
    ('concurrency 1, 16', 'rate 2/s', 'rate 2/s, concurrency 1')
    """
    kinds = {load.partition(" ")[0] for load in loads}
    return ", ".join([loads[0], *(load.partition(" ")[2] if len(kinds) == 1 else load for load in loads[1:])])


def graph_passes_of(points: list[dict[str, Any]]) -> dict[str, dict[str, int]] | None:
    """Return the graph passes of all points together; None when the engine counts none."""
    counted = [point["engine"]["graph_passes"] for point in points if point["engine"]["graph_passes"] is not None]
    if not counted:
        return None

    def total(phase: str, kind: str) -> int:
        return sum(one[phase][kind] for one in counted)

    return {phase: {kind: total(phase, kind) for kind in ("graph", "eager")} for phase in ("decode", "prefill")}
