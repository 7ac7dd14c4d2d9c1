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


def test_what_the_engine_said_stands_in_the_message_with_its_cure():
    host, store = new_host()
    deploy(host, store, spec_dict(8))
    host.broken = {"--bad": "crash"}
    host.journal = "Load weight begin.\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    deploy(host, store, spec_dict(8, extra=("--bad",)), replace=True)
    attempt = store.attempt()
    text = failure_text(attempt, instance=INSTANCE)
    assert "[LOG-OOM-WEIGHTS]\n  log:   torch.OutOfMemoryError: CUDA out of memory." in text
    assert attempt["log"]["do"] in text.splitlines()[-1]
    assert '"code": "LOG-OOM-WEIGHTS"' in host.files[f"{attempt['evidence']}/cause.json"]


def test_a_start_that_passed_its_deadline_is_a_hang_whatever_its_log_complains_about():
    """R20."""
    host, store = new_host()
    deploy(host, store, spec_dict(8))
    host.broken = {"--bad": "hang"}
    host.journal = "Failed to CUDA calloc 10485760 bytes\nCapturing batches (bs=16)\n"
    deploy(host, store, spec_dict(8, extra=("--bad",)), replace=True)
    assert store.attempt()["log"]["code"] == "LOG-CAPTURE-HANG"


def test_a_server_that_runs_is_not_accused_of_an_error_it_lived_through():
    host, store = new_host()
    deploy(host, store, spec_dict(8))
    host.verdicts = ["fail"]
    host.journal = "ImportError: libx.so: cannot open shared object file\n"
    deploy(host, store, spec_dict(0), replace=True)
    assert store.attempt()["outcome"] == "rolled_back" and "log" not in store.attempt()
    host.verdicts = ["fail"]
    host.journal = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\n"
    deploy(host, store, spec_dict(4), replace=True)
    assert store.attempt()["log"]["code"] == "LOG-XID"
