# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several servers gated in one play, as one table: a line for each point of each host, and why a host is no pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .report_format import ABSENT, mappings, texts
from .tables import aligned, folded
from .terminal import HEAD, cells

NOT_JUDGED = "not judged"


def hosts_table(answers: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return the lines for ``answers`` by host, each what throughput_gate returned; None: it did not come that far."""
    rows, why = [], []
    for host, given in answers.items():
        answer = given or {}
        points = [cells(point) for point in mappings(answer.get("points"))]
        verdict = str(answer.get("verdict") or NOT_JUDGED)
        for place, row in enumerate(points or [("",) * len(HEAD)]):
            rows.append((host if place == 0 else "", verdict if place == 0 else "", *row))
        reasons = texts(answer.get("reasons")) or [str(answer.get("msg") or "an earlier task failed, see above").splitlines()[0]]
        if verdict != "pass":
            why += [line for reason in reasons for line in folded(f"{host}: ", reason)]
    head = ("host", "verdict", *HEAD[:-1], "of the point")
    known = [any(row[place] for row in rows) for place in range(len(head))]
    shown = [[(cell or (ABSENT if place > 1 else "")) if known[place] else "" for place, cell in enumerate(row)] for row in rows]
    titles = [name if known[place] else "" for place, name in enumerate(head)]
    return aligned([titles, *shown], left=(0, 1, 2, len(head) - 1)) + why
