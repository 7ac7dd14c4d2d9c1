"""Deployed on an untouched host: gated, promoted, admitted, and what a reboot would start."""

import json

from conftest import PROMOTED_UNIT


def test_the_gate_passed_and_its_release_is_promoted(view):
    _, gate = view.last_gate
    assert gate["result"]["verdict"] == "pass"
    assert view.promoted == gate["release"]


def test_only_the_promoted_unit_is_enabled_and_runs(view):
    assert view.enabled() == [PROMOTED_UNIT]
    assert view.serving() == view.promoted


def test_clients_are_served_through_the_front_alone(host, serves):
    """R65: the served name and one real generation, not a green health page."""
    assert serves() == ["kimi-k2.6"]
    body = json.dumps({"model": "kimi-k2.6", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8})
    answer = host.run("curl -sf -m 30 -H 'Content-Type: application/json' -d %s http://127.0.0.1:8000/v1/chat/completions", body)
    assert answer.rc == 0
    assert json.loads(answer.stdout)["usage"]["completion_tokens"] > 0
    assert not host.socket("tcp://0.0.0.0:30000").is_listening


def test_asked_and_running_agree(host, view):
    """R52: what was asked is what the server resolved."""
    info = json.loads(host.check_output("curl -sf http://127.0.0.1:30000/server_info"))
    assert (info["pp_size"], info["pp_async_batch_depth"], info["attention_backend"]) == (8, 8, "triton")


def test_the_report_is_readable_after_the_run(host, view):
    folder, _ = view.last_gate
    for name in ("result.json", "samples.jsonl", "progress.jsonl", "report.html", "report.md", "junit.xml"):
        assert host.file(f"{folder}/{name}").size > 0, name


def test_check_mode_on_a_deployed_host_predicts_no_change(kept):
    assert "changed=0" in (kept / "check_mode.log").read_text()
