# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long a transaction takes without service, by phase, told before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..units import human_seconds
from .spec import ReleaseSpec

PROOF_S = 10.0
WARM_UP_S = 15.0
# 200 short answers, 16 at a time at some 10 tokens a second each; a text of 100,000 tokens at the plan's own default limit.
GRADED_S = 120.0
LONG_CONTEXT_S = 600.0


def load_seconds(spec: ReleaseSpec, history: Iterable[Mapping[str, Any]]) -> tuple[float, str]:
    """Return the expected time until ready and where the figure is from: the last start of this model here, or the deadline."""
    for event in reversed(list(history)):
        if event.get("load_s") is not None and event.get("model") == spec.model["path"]:
            return float(event["load_s"]), "as the last start"
    return spec.timeouts["start_s"], "no start seen yet, so its deadline"


def gate_seconds(spec: ReleaseSpec) -> float:
    """Return the longest time one gate of this plan takes."""
    plan = spec.plan
    points = plan.get("points") or ()
    per_point = float(plan.get("max_seconds_per_point", 180))
    rules = plan.get("correctness") or {}
    questions = GRADED_S if rules.get("graded") else 0.0
    if long_context := rules.get("long_context"):
        questions += float(long_context.get("max_seconds") or LONG_CONTEXT_S)
    return min(spec.timeouts["gate_s"], len(points) * (per_point + WARM_UP_S) + questions)


def forecast(spec: ReleaseSpec, back: ReleaseSpec | None, history: Iterable[Mapping[str, Any]], *, gated: bool) -> dict[str, Any]:
    """Return expected seconds by phase, at most: out_s when it passes, back_s more when it goes back."""
    events = list(history)
    load_s, load_from = load_seconds(spec, events)
    phases = {"drain": spec.timeouts["drain_s"] if back else 0.0, "load": load_s, "proof": PROOF_S}
    phases["gate"] = gate_seconds(spec) if gated else 0.0
    back_s = load_seconds(back, events)[0] + PROOF_S if back else 0.0
    out_s = sum(phases.values())
    return {"phases": phases, "out_s": out_s, "back_s": back_s, "worst_s": out_s + back_s, "load_from": load_from}


def told(figures: Mapping[str, Any], *, serves: bool) -> str:
    """Return the forecast as one line."""
    phases = figures["phases"]
    parts = ", ".join(f"{name} {human_seconds(value)}" for name, value in phases.items() if value)
    parts += f"; load {figures['load_from']}" if phases.get("load") else ""
    until = "without service" if serves else "until it serves"
    back = f", {human_seconds(figures['back_s'])} more if it goes back" if serves and figures["back_s"] else ""
    return f"forecast: at most {human_seconds(figures['out_s'])} {until} ({parts}){back}"
