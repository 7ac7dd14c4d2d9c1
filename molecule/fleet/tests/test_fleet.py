"""A fleet behind the real router: a canary that fails stops the rest, a good upgrade loses no request."""

import json
import re

import pytest
from conftest import PROMOTED_UNIT

RECAP = re.compile(r"^(story-fleet-\d) +: .*changed=(\d+).*failed=(\d+)", re.MULTILINE)


@pytest.fixture
def client(kept):
    return json.loads((kept / "client.json").read_text())


def test_no_client_saw_an_error(client):
    assert client["errors"] == []
    assert len(client["ok"]) > 100
    assert sum(tokens == 500 for _, tokens in client["ok"]) > 5


def test_the_second_run_of_the_router_changed_nothing(kept):
    assert {changed for _, changed, _ in RECAP.findall((kept / "router_again.log").read_text())} == {"0"}


def test_a_canary_that_fails_stops_the_rest_and_the_router_still_serves(kept):
    log = (kept / "canary_fails.log").read_text()
    assert "story-fleet-2 first, then 2 by 1; 3 of 3 serve now, never fewer than 2" in log
    recap = {name: failed for name, _, failed in RECAP.findall(log)}
    assert recap == {"story-fleet-1": "0", "story-fleet-2": "1", "story-fleet-3": "0"}
    assert log.count("TASK [inferops.sglang.sglang_release : Submit | Hand the release to the host and follow it]") == 1
    workers = json.loads((kept / "workers_after_canary.json").read_text())["workers"]
    assert [worker["is_healthy"] for worker in workers] == [True] * 3


def test_a_plan_that_leaves_too_few_is_refused_before_anything_is_touched(kept):
    log = (kept / "too_few.log").read_text()
    assert "1 of 3 servers would be left, 60% are to serve at any time" in log
    assert "PLAY [Deploy a gated SGLang server]" not in log


def test_the_canary_went_first_and_the_others_one_by_one(kept):
    log = (kept / "upgrade.log").read_text()
    task = r"TASK \[inferops.sglang.sglang_release : Submit \| Tell why it is not in service\]"
    followed = re.findall(task + r" \*+\n\w+: \[([\w-]+)\]", log)
    assert followed == ["story-fleet-2", "story-fleet-1", "story-fleet-3"]


def test_this_server_is_upgraded_enrolled_and_the_only_one_enabled(view, host):
    assert view.promoted != view.previous is not None
    assert view.serving() == view.promoted
    assert view.enabled() == [PROMOTED_UNIT]
    assert json.loads(host.check_output("curl -sf http://127.0.0.1:30000/server_info"))["context_length"] == 65536
    assert "enrolled with 1 of 1 routers" in host.check_output("systemctl show -P StatusText sglang-kimi-front-enrolment.service")
