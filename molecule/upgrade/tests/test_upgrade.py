"""An upgrade that passes: the new release serves, the old one is the way back."""

import json

from conftest import PROMOTED_UNIT


def test_deploy_alone_refused_and_named_the_upgrade(kept):
    assert "upgrade.yml" in (kept / "refused.log").read_text()


def test_the_new_release_serves(view, serves, host):
    assert view.promoted != view.previous is not None
    assert view.serving() == view.promoted
    assert view.enabled() == [PROMOTED_UNIT]
    assert serves() == ["kimi-k2.6"]
    assert json.loads(host.check_output("curl -sf http://127.0.0.1:30000/server_info"))["context_length"] == 65536


def test_both_were_gated(view):
    assert {gate["release"] for gate in view.gates.values()} == {view.promoted, view.previous}
    assert [gate["result"]["verdict"] for gate in view.gates.values()] == ["pass", "pass"]
