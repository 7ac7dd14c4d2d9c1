# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why a server is as fast as it is, concluded from what was measured and never from its flags.

Each rule returns one finding or None. Codes and thresholds are explained in docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import diagnosis_cards, diagnosis_causes, diagnosis_figures, diagnosis_flow
from .diagnosis_evidence import Finding, Observed

CODES = (
    "GATE-CACHED",
    "GATE-ABOVE-BOUND",
    "GATE-THROTTLE",
    "GATE-CLIENT",
    "GATE-NETWORK",
    "GATE-COMPILE",
    "GATE-KV",
    "GATE-QUEUE",
    "GATE-PREFILL",
    "GATE-LAUNCH",
    "GATE-EAGER",
    "GATE-SCHEDULER",
    "GATE-FILL",
    "GATE-SLOW-STAGE",
    "GATE-SLOW-HOP",
    "GATE-P2P",
    "GATE-BACKEND",
    "GATE-ROOFLINE",
    "GATE-POWER",
    "GATE-HEADROOM",
)
# Where one of these holds requests or cards back, stages stand empty because of it.
EMPTIES_STAGES = frozenset(
    {"GATE-THROTTLE", "GATE-CLIENT", "GATE-NETWORK", "GATE-COMPILE", "GATE-KV", "GATE-QUEUE", "GATE-PREFILL", "GATE-SLOW-STAGE"}
)


def diagnose(result: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[Finding]:
    """Return findings {code, message, evidence, do}: what makes a figure worthless, causes by the time they take, signs.

    ``result`` is the gate's result so far. ``evidence``, every key optional: pp_size, tp_size, num_layers,
    stage_read_bytes (list, bytes), require (the plan's). pp_size and tp_size fall back on the resolved arguments.
    """
    seen = Observed.of(result, evidence)
    first = [diagnosis_figures.cached(seen), diagnosis_figures.above_bound(seen)]
    launch = diagnosis_causes.launch(seen)
    found = [
        diagnosis_figures.throttle(seen),
        diagnosis_flow.client(seen),
        diagnosis_flow.network(seen),
        diagnosis_flow.compilation(seen),
        diagnosis_flow.kv_pressure(seen),
        diagnosis_flow.queue(seen),
        diagnosis_flow.prefill(seen),
        launch,
        diagnosis_causes.eager(seen, said=launch is not None),
        diagnosis_flow.scheduler(seen),
        diagnosis_cards.slow_stage(seen),
        diagnosis_cards.links(seen),
        diagnosis_cards.unsuited(seen),
        diagnosis_cards.roofline(seen),
    ]
    causes = _without_echoes([item for item in found if item is not None])
    fill = diagnosis_causes.fill(seen)
    if fill is not None and diagnosis_causes.crowds(seen, fill):
        causes.append(fill)
        fill = None
    elif {item["code"] for item in causes} & EMPTIES_STAGES:
        fill = None
    causes.sort(key=lambda item: _rank(item, eager=launch is not None))
    causes += [fill] if fill is not None else []
    signs = [diagnosis_cards.power(seen) if causes else None, diagnosis_figures.headroom(seen)]
    return [item for item in (*first, *causes, *signs) if item is not None]


def _rank(cause: Finding, *, eager: bool) -> tuple[bool, float]:
    """Order causes by the time they take. The scheduler's share can be judged once the host need not launch every kernel."""
    return eager and cause["code"] == "GATE-SCHEDULER", -float(cause["evidence"].get("lost_ratio", 0.0))


def _without_echoes(causes: list[Finding]) -> list[Finding]:
    """Leave out what another cause brings with it: a stop while kernels are compiled also delays first tokens."""
    said = {item["code"] for item in causes}
    echoes = {"GATE-PREFILL"} if "GATE-COMPILE" in said else set()
    return [item for item in causes if item["code"] not in echoes]
