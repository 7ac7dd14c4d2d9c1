# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The bound as the gate uses it: beside a figure, as a yardstick, to refuse a limit nobody can reach; with its assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InferopsError
from ..topology.roofline import Bound
from .load_words import load_key
from .plan import GatePlan

if TYPE_CHECKING:
    from .context import GateContext

# A copy reads and writes in turn; plain reading may be up to this much faster (assumed). Only what is above that is refused.
READ_OVER_COPY = 1.1
SAID_FROM = 1.25


@dataclass(frozen=True)
class PointBound:
    """What bandwidth allows at one point, and from which figure on it is not believed any more."""

    fillings: Bound
    pipelined: bool
    ceiling_ratio: float = 1.0

    @property
    def tokens_per_s(self) -> float:
        return self.fillings.best.tokens_per_s

    @property
    def ceiling_tokens_per_s(self) -> float:
        return self.tokens_per_s * self.ceiling_ratio

    def as_dict(self) -> dict[str, Any]:
        """Return the fillings as the result tells them."""
        best, serial, one_each = self.fillings.best, self.fillings.serial, self.fillings.one_each
        told = {"filled": best.text, "filled_tokens_per_s": round(best.tokens_per_s, 2)}
        if self.pipelined:
            told |= {
                "serial_tokens_per_s": round(serial.tokens_per_s, 2),
                "one_each_tokens_per_s": round(one_each.tokens_per_s, 2),
            }
        return told

    def headroom(self, tokens_per_s: float | None, verdict: str) -> str | None:
        """Say what a point that passes leaves on the table; None when it is little, or does not pass."""
        if not tokens_per_s or verdict not in ("pass", "observed") or self.tokens_per_s < SAID_FROM * tokens_per_s:
            return None
        how = (
            f"a filled pipeline ({self.fillings.best.text})"
            if self.pipelined and self.fillings.best.micro_batches > 1
            else "the bound"
        )
        word = "passes" if verdict == "pass" else "observed"
        return f"{word}, but {how} would give up to {self.tokens_per_s / tokens_per_s:.1f} ×"


def check_reachable(plan: GatePlan, context: GateContext) -> None:
    """Refuse a limit above what the cards can do; raise InferopsError before any load is put on."""
    for index, point in enumerate(plan.points):
        bound = context.bound(concurrency=point.concurrency, context_tokens=mean_context(plan))
        offered = 0.0 if point.rate is None else point.rate * plan.output_tokens
        if bound is not None and point.limits and offered > bound.ceiling_tokens_per_s:
            raise InferopsError(
                f"{point.rate:g} requests/s with {plan.output_tokens} tokens each cannot be kept up with: the bound is "
                f"{bound.tokens_per_s:.4g} tok/s",
                where=f"plan.points[{index}].rate",
                why="; ".join(context.assumptions()),
                do="lower the rate, or correct model, layout or bandwidth",
            )
        for limit in point.limits:
            if limit.name != "min_output_tokens_per_s" or bound is None or limit.value <= bound.ceiling_tokens_per_s:
                continue
            raise InferopsError(
                f"{limit.value:g} tok/s at {point.words} cannot be reached: the bound is {bound.tokens_per_s:.4g}",
                where=f"plan.points[{index}].{limit.name}",
                why="; ".join(context.assumptions()),
                do="lower the limit, or correct model, layout or bandwidth",
            )


def with_limits(plan: GatePlan, context: GateContext) -> tuple[GatePlan, str | None]:
    """Give a plan without limits those of a first or a later deploy, with a note that says so; refuse one no card could meet."""
    promoted = promoted_points(context.promoted_result, plan)
    settled = plan.with_default_limits(promoted, tp_size=context.tp_size)
    check_reachable(settled, context)
    if settled is plan:
        return plan, None
    chosen = ", ".join(f"{point.limits[0].name} {point.limits[0].value:g} at {point.words}" for point in settled.points)
    return settled, f"the plan names no limit, so the default holds: {chosen}"


def mean_context(plan: GatePlan, input_tokens: float | None = None) -> float:
    """Tokens in the cache of a request, on average over its answer; of a file's prompts once their length is known."""
    return (input_tokens or plan.input_tokens) + plan.output_tokens / 2


def promoted_points(promoted: Mapping[str, Any] | None, plan: GatePlan, *, tolerance: float = 0.05) -> list[int | str | None]:
    """Return the loads at which the promoted release has a figure for the same lengths at the same endpoint."""
    if ((promoted or {}).get("plan") or {}).get("endpoint", "completions") != plan.endpoint:
        return []

    def near(point: Mapping[str, Any], key: str, wanted: int) -> bool:
        mean = (point.get(key) or {}).get("mean")
        return mean is None or abs(mean - wanted) <= tolerance * wanted

    return [
        load_key(point)
        for point in (promoted or {}).get("points") or []
        if point.get("ci")
        and point["ci"][0] > 0
        and near(point, "input_tokens", plan.input_tokens)
        and near(point, "output_tokens", plan.output_tokens)
    ]
