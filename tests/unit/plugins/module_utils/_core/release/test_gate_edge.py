"""What the gate inside a transaction is handed: a plan that it can carry out, and what its report tells beside its figures."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.gate_edge import about, check_gate
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


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        pytest.param(
            {"sanity": {"prompt": [{"role": "user", "content": "hi"}]}}, "is not a non-empty text", id="R98 a body for a text"
        ),
        pytest.param({"sanity": {"body": {}}}, "body is not a key", id="R98 a body of one's own"),
        pytest.param({"prompts": {"file": "{folder}/absent"}}, "cannot be read", id="R98 no such prompts"),
        pytest.param({"prompts": {"file": "{folder}/text.jsonl"}}, "is not a prompt", id="R98 messages as a string"),
        pytest.param(
            {"correctness": {"graded": {"file": "{folder}/text.jsonl"}}}, "is not an item", id="R98 an item without answer"
        ),
    ],
)
def test_what_the_gate_could_not_send_is_refused_before_anything_is_touched_r98(plan, what, tmp_path):
    (tmp_path / "text.jsonl").write_text(json.dumps({"messages": "hi"}))
    written = json.loads(json.dumps(plan).replace("{folder}", str(tmp_path)))
    spec = ReleaseSpec.from_dict(spec_dict(plan={"points": [{"concurrency": 1}], **written}))
    with pytest.raises(InferopsError, match=what):
        check_gate(spec)


def test_a_plan_with_files_that_can_be_sent_is_taken(tmp_path):
    (tmp_path / "prompts.txt").write_text("tell me of the sea\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"prompt": "1 + 1", "answer": "2"}))
    plan = {
        "points": [{"concurrency": 1}],
        "prompts": {"file": str(tmp_path / "prompts.txt")},
        "correctness": {"graded": {"file": str(tmp_path / "items.jsonl")}},
    }
    check_gate(ReleaseSpec.from_dict(spec_dict(plan=plan)))
