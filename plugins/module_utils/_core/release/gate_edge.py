# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the transaction hands to the gate: a plan and a context the gate takes, and what its report tells beside the figures."""

from __future__ import annotations

from typing import Any

from ..gate.bound import check_reachable
from ..gate.context import GateContext
from ..gate.plan import GatePlan
from ..gate.plan_files import check_files
from .proof import asked_fields
from .spec import ReleaseSpec


def check_gate(spec: ReleaseSpec) -> None:
    """Refuse a plan, its files or a context that the gate would not take, or a limit no card could meet, in good time."""
    context = GateContext.from_dict(spec.gate_context).filled_from(spec.check.get("effective") or {})
    plan = GatePlan.from_dict(dict(spec.plan))
    check_files(plan)
    check_reachable(plan, context)


def about(spec: ReleaseSpec) -> dict[str, Any]:
    """Return what a report tells beside the figures: what was asked, what the check found, which release it is."""
    check = spec.check
    effective, changed = check.get("effective") or {}, check.get("changed") or {}
    asked = {
        name: changed[name]["from"] if name in changed else effective[name]
        for name in sorted(asked_fields(spec.argv))
        if name in changed or name in effective
    }
    told = {key: check[key] for key in ("sglang_version", "tier", "outcome", "findings") if key in check}
    return {"release": {"id": spec.id, "instance": spec.instance}, "asked": asked, "check": told}
