"""What the report of a gate inside a transaction tells beside its figures."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.gate_edge import about
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec

from .releases import spec_dict

FINDING = {"code": "SGA310", "level": "advice", "accepted": {"reason": "measured"}}


def test_the_report_tells_what_was_asked_before_sglang_changed_it():
    check = {
        "tier": "static",
        "outcome": "ok",
        "effective": {"pp_async_batch_depth": 8, "enable_metrics": False, "page_size": 64},
        "changed": {"enable_metrics": {"from": True, "to": False}, "page_size": {"from": 1, "to": 64}},
        "findings": [FINDING],
    }
    spec = ReleaseSpec.from_dict(spec_dict(check=check))
    told = about(spec)
    assert told["asked"] == {"enable_metrics": True, "pp_async_batch_depth": 8}
    assert told["check"]["findings"] == [FINDING]
    assert "effective" not in told["check"]
    assert told["release"] == {"id": spec.id, "instance": spec.instance}
    assert GateContext.from_dict({"about": told}).about == told
