"""The last words about an attempt that did not reach its end."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.told import DO, failure_text

from .releases import deploy, new_host, spec_dict
from .simulated_host import INSTANCE


@pytest.mark.parametrize("outcome", [*DO, "nothing_serves"])
def test_every_bad_end_says_what_where_why_and_do(outcome):
    attempt = {"outcome": outcome, "message": "it ended", "id": "abc", "failed_in": "proof", "reasons": ["one", "two"]}
    first, *rest = failure_text(attempt, instance="kimi").splitlines()
    assert first == "it ended"
    assert [line.split()[0] for line in rest] == ["where:", "why:", "why:", "do:"]
    assert "release abc, phase proof" in rest[0]


def test_a_failed_proof_names_the_candidate_its_phase_and_the_evidence():
    host, store = new_host()
    deploy(host, store, spec_dict(8))
    host.misresolved = {"pp_async_batch_depth": 3}
    deploy(host, store, spec_dict(0), replace=True)
    attempt = store.attempt()
    text = failure_text(attempt, instance=INSTANCE)
    assert f"release {attempt['id']}, phase proof" in text
    assert f"{attempt['evidence']} on the host" in text
    assert any(name.startswith(attempt["evidence"]) for name in host.files)


def test_causes_of_the_gate_are_named():
    found = {"code": "GATE-FILL", "message": "poor fill"}
    text = failure_text({"outcome": "stopped", "gate": {"diagnosis": [found], "folder": "/g"}}, instance="kimi")
    assert "cause: poor fill [GATE-FILL]" in text
    assert "see:   /g/report.html" in text
