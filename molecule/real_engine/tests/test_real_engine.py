"""SGLang itself: one stage deployed, gated, promoted; what cannot start leaves it serving; then two stages, then eight."""

import json

from conftest import PROMOTED_UNIT


def info(host):
    return json.loads(host.check_output("curl -sf -m 20 http://127.0.0.1:30000/server_info"))


def passed_gates(view):
    return [gate for gate in view.gates.values() if gate["result"]["verdict"] == "pass"]


def test_it_is_the_published_engine_and_no_stand_in(host):
    seen = info(host)
    assert seen["version"] == "0.5.23"
    assert "simulated" not in seen


def test_each_split_was_gated_by_what_the_server_itself_said_it_is(view):
    passed = [gate["result"] for gate in passed_gates(view)]
    assert [gate["engine"]["resolved"]["pp_size"] for gate in passed] == [1, 2, 8]
    assert [gate["engine"]["simulated"] for gate in passed] == [False] * 3
    # On a busy machine a gate may say that it cannot tell, which has the transaction gate once more, longer.
    assert {gate["result"]["verdict"] for gate in view.gates.values()} <= {"pass", "inconclusive"}


def test_eight_stages_serve_with_depth(host, view):
    seen = info(host)
    assert (seen["pp_size"], seen["pp_async_batch_depth"], seen["device"]) == (8, 1, "cpu")
    assert view.enabled() == [PROMOTED_UNIT]
    two, eight = (gate["release"] for gate in passed_gates(view)[-2:])
    assert view.serving() == view.promoted == eight
    assert view.previous == two


def test_sglang_itself_said_what_the_proof_compared(view):
    """The live tier runs as the server does, so that values which hang on the memory of the machine agree."""
    check = view.checks[view.promoted]
    assert check["tier"] == "live"
    assert check["effective"]["pp_size"] == 8
    assert check["effective"]["chunked_prefill_size"] is not None


def test_what_could_not_start_left_the_one_stage(kept):
    before, after = (json.loads((kept / f"{name}.json").read_text()) for name in ("one_stage", "gone_back"))
    assert after["promoted"] == before["promoted"] is not None
    assert after["attempt"]["id"] != after["promoted"]
    assert len(after["gates"]) == len(before["gates"]) == 1
    serving = {name: unit["ActiveState"] for name, unit in after["units"].items() if name == PROMOTED_UNIT}
    assert serving == {PROMOTED_UNIT: "active"}


def test_a_client_is_answered_through_the_front(host, serves):
    assert serves() == ["tiny"]
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "ignore_eos": True})
    words = "curl -sf -m 60 -H 'Content-Type: application/json' -d %s http://127.0.0.1:8000/v1/chat/completions"
    answer = json.loads(host.check_output(words, body))
    assert answer["usage"]["completion_tokens"] == 8
    # Random weights end no thought: all they say is reasoning.
    assert answer["choices"][0]["message"]["reasoning_content"]


def test_all_stages_are_measured(host):
    """Metrics of a pipeline carry its ranks: a sum over them counts eight times."""
    text = host.check_output("curl -sf -m 20 http://127.0.0.1:30000/metrics")
    assert all(f'pp_rank="{rank}"' in text for rank in range(8))


def test_the_departures_from_the_pins_are_shown(kept):
    assert "torch" in (kept / "one_stage.log").read_text()
