# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The score of a set of answers: share of right ones with Wilson's interval, its limits, and examples of what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .plan_limits import Limit
from .stats import share_interval
from .verdict import FAIL, INCONCLUSIVE, PASS, Judged, at_least

SHOWN = 5
TEXT_SHOWN = 160


@dataclass(frozen=True)
class Graded:
    """One answer: ``why`` it is wrong, None when it is right."""

    kind: str
    prompt: str
    answer: str
    why: str | None = None


@dataclass(frozen=True)
class Score:
    """A judged set."""

    name: str
    answers: Sequence[Graded]
    limits: Sequence[Judged]
    ci: tuple[float, float] | None

    @property
    def right(self) -> int:
        return sum(answer.why is None for answer in self.answers)

    @property
    def ratio(self) -> float | None:
        return self.right / len(self.answers) if self.answers else None

    def reasons(self, verdict: str) -> list[str]:
        """Return one sentence per limit that came to this verdict, the last one with an example."""
        found = [f"{self.name}: {limit.text()}" for limit in self.limits if limit.verdict == verdict]
        example = next((answer for answer in self.answers if answer.why is not None), None)
        if found and example is not None:
            found[-1] += f"; such as {example.why} ({example.answer[:60]!r})"
        return found

    def as_dict(self) -> dict[str, Any]:
        wrong = [answer for answer in self.answers if answer.why is not None]
        kinds: dict[str, list[int]] = {}
        for answer in self.answers:
            count = kinds.setdefault(answer.kind, [0, 0])
            count[0] += answer.why is None
            count[1] += 1
        return {
            "items": len(self.answers),
            "right": self.right,
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "ci": None if self.ci is None else [round(end, 4) for end in self.ci],
            "kinds": kinds,
            "limits": [limit.as_dict() for limit in self.limits],
            "verdict": self.verdict,
            "wrong": [
                {"kind": one.kind, "prompt": one.prompt[:TEXT_SHOWN], "answer": one.answer[:TEXT_SHOWN], "why": one.why}
                for one in wrong[:SHOWN]
            ],
        }

    @property
    def verdict(self) -> str:
        words = [limit.verdict for limit in self.limits]
        return FAIL if FAIL in words else INCONCLUSIVE if INCONCLUSIVE in words else PASS if words else "observed"


def scored(
    name: str,
    answers: Sequence[Graded],
    *,
    confidence: float,
    least: float | None,
    least_name: str,
    to_promoted: float | None = None,
    promoted: Mapping[str, Any] | None = None,
) -> Score:
    """Judge a set by its own share and by its ratio to the promoted release's share on the same items."""
    count = len(answers)
    right = sum(answer.why is None for answer in answers)
    ci = share_interval(right, count, confidence)
    ratio = right / count if count else None
    limits = []
    if least is not None:
        limits.append(at_least(Limit(least_name, least), ratio, ci, count))
    if to_promoted is not None:
        limit = Limit("min_ratio_to_promoted", to_promoted)
        if promoted is None or not promoted.get("ratio") or not promoted.get("ci"):
            why = "the promoted release has no score on these items"
            limits.append(Judged(limit.name, limit.value, None, None, count, INCONCLUSIVE, why))
        else:
            low, high = promoted["ci"]
            against = None if ci is None or not low else (ci[0] / high, ci[1] / low)
            limits.append(at_least(limit, None if ratio is None else ratio / promoted["ratio"], against, count))
    return Score(name, answers, limits, ci)
