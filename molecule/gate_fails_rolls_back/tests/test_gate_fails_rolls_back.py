"""A slow candidate never reaches a client: the promoted release is back, proven and admitted."""

import re

from conftest import PROMOTED_UNIT


def test_the_gate_failed_and_names_causes(view):
    _, gate = view.last_gate
    assert gate["result"]["verdict"] == "fail"
    assert gate["release"] != view.promoted
    assert "GATE-LAUNCH" in [entry["code"] for entry in gate["result"]["diagnosis"]]


def test_the_promoted_release_serves_again(view, serves):
    assert view.serving() == view.promoted
    assert view.enabled() == [PROMOTED_UNIT]
    assert serves() == ["kimi-k2.6"]


def test_both_releases_and_both_gates_are_kept(view):
    assert len(view.releases) == 2
    assert len(view.gates) == 2


def test_the_attempt_is_over_and_tells_its_end(view):
    assert view.promoted != view.attempt["id"]
    assert [event["event"] for event in view.history].count("promoted") == 1


def test_the_play_printed_the_forecast_and_the_reason(kept):
    text = (kept / "upgrade.log").read_text()
    assert re.search("forecast", text, re.IGNORECASE)
    assert "min_output_tokens_per_s" in text or "tok/s" in text


def test_the_verdict_is_an_artifact_of_the_run(kept, view):
    """AWX keeps what the run says, not what it says per host."""
    text = (kept / "upgrade.log").read_text()
    run = text[text.index("CUSTOM STATS") :].partition("RUN:")[2]
    assert "inferops_results:" in run and "verdict: fail" in run and "outcome: rolled_back" in run
