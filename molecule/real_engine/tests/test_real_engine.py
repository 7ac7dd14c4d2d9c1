"""SGLang itself: one stage deployed, gated and promoted; then two stages; what cannot start leaves the two stages serving."""

import json

from conftest import PROMOTED_UNIT


def info(host):
    return json.loads(host.check_output("curl -sf -m 20 http://127.0.0.1:30000/server_info"))


def test_it_is_the_published_engine_and_no_stand_in(host, view):
    seen = info(host)
    assert seen["version"] == "0.5.23"
    assert "simulated" not in seen
    assert view.promoted


def test_two_stages_serve_after_a_gate_that_passed(host, view):
    seen = info(host)
    assert (seen["pp_size"], seen["device"]) == (2, "cpu")
    assert view.enabled() == [PROMOTED_UNIT]
    assert view.serving() == view.promoted
    passed = [gate for gate in view.gates.values() if gate["result"]["verdict"] == "pass"]
    assert len(passed) == 2
    assert passed[-1]["release"] == view.promoted


def test_sglang_itself_said_what_the_proof_compared(view):
    """The live tier runs as the server does, so that values which hang on the memory of the machine agree."""
    check = view.checks[view.promoted]
    assert check["tier"] == "live"
    assert check["effective"]["pp_size"] == 2
    assert check["effective"]["chunked_prefill_size"] is not None


def test_what_could_not_start_left_the_two_stages(view, kept):
    before = json.loads((kept / "two_stages.json").read_text())
    assert view.promoted == before["promoted"]
    assert view.attempt["id"] != view.promoted
    assert len(view.gates) == len(before["gates"])


def test_a_client_is_answered_through_the_front(host, serves):
    assert serves() == ["tiny"]
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "ignore_eos": True})
    words = "curl -sf -m 60 -H 'Content-Type: application/json' -d %s http://127.0.0.1:8000/v1/chat/completions"
    answer = json.loads(host.check_output(words, body))
    assert answer["usage"]["completion_tokens"] == 8
    # Random weights end no thought: all they say is reasoning.
    assert answer["choices"][0]["message"]["reasoning_content"]


def test_both_stages_are_measured(host):
    """Metrics of a pipeline carry its ranks: a sum over them counts twice."""
    text = host.check_output("curl -sf -m 20 http://127.0.0.1:30000/metrics")
    ranks = {rank for rank in ("0", "1") if f'pp_rank="{rank}"' in text}
    assert ranks == {"0", "1"}


def test_the_departures_from_the_pins_are_shown(kept):
    assert "torch" in (kept / "one_stage.log").read_text()
