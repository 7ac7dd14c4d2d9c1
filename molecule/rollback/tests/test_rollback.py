"""Promote, then roll back: the first release serves again, without a second gate."""

import json

from conftest import PROMOTED_UNIT


def test_the_first_release_serves(view, serves, host):
    first = next(event["release"] for event in view.history if event["event"] == "promoted")
    assert view.promoted == first
    assert view.serving() == view.promoted
    assert view.enabled() == [PROMOTED_UNIT]
    assert serves() == ["kimi-k2.6"]
    assert json.loads(host.check_output("curl -sf http://127.0.0.1:30000/server_info"))["context_length"] == 131072


def test_going_back_ran_no_gate(view):
    assert len(view.gates) == 2
