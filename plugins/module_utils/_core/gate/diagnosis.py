# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why a server is as fast as it is, concluded from what was measured and never from its flags.

Each rule returns one finding or None. Codes and thresholds are explained in docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import diagnosis_causes, diagnosis_figures
from .diagnosis_evidence import Finding, Observed


def diagnose(result: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[Finding]:
    """Return findings {code, message, evidence, do}, the heaviest first.

    ``result`` is the gate's result so far. ``evidence``, every key optional: pp_size, tp_size, num_layers,
    stage_read_bytes (list, bytes), require (the plan's). pp_size and tp_size fall back on the resolved arguments.
    """
    seen = Observed.of(result, evidence)
    launch = diagnosis_causes.launch(seen)
    found = [
        diagnosis_figures.cached(seen),
        diagnosis_figures.above_bound(seen),
        diagnosis_figures.throttle(seen),
        launch,
        diagnosis_causes.eager(seen, said=launch is not None),
        diagnosis_causes.fill(seen),
        diagnosis_causes.slow_stage(seen),
        diagnosis_causes.power(seen),
        diagnosis_figures.headroom(seen),
    ]
    return [item for item in found if item is not None]
