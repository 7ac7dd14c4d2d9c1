# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A front behind routers: the last thing that opens, the first that closes, also when the runner is killed anywhere."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import info
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.host import Answer
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.ports import Listener
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.systemd import setting

from .releases import ask, deploy, new_host, run_attempt, spec_dict
from .simulated_host import INSTANCE, Crash

FRONT = {"kind": "router", "listen": "10.0.0.5:8000", "worker": "http://10.0.0.5:8000", "routers": ["http://10.0.0.1:8000"]}
OLD, NEW = (spec_dict(depth, front=FRONT) for depth in (8, 0))
OLD_ID, NEW_ID = (ReleaseSpec.from_dict(spec).id for spec in (OLD, NEW))
ENROLMENT, SOCKET = f"sglang-{INSTANCE}-front-enrolment.service", f"sglang-{INSTANCE}-front.socket"


def watched():
    """Return a host that tells in which order units start and stop, how many servers are up then, and its store."""
    host, store = new_host()
    host.told = []
    for verb in ("start", "stop"):
        does = getattr(host, f"do_{verb}")

        def tell(unit, verb=verb, does=does):
            host.told.append((verb, unit, len(host.serving())))
            does(unit)

        setattr(host, f"do_{verb}", tell)
    return host, store


def admitted(host, release):
    (unit,) = host.serving()
    text = host.files[f"/etc/systemd/system/{unit}"]
    return f"/releases/{release} " in text and host.is_open() and host.state(ENROLMENT) == "active"


def test_the_server_enrols_after_its_promotion_and_leaves_before_anything_else_ends():
    host, store = watched()
    assert deploy(host, store, OLD) == "promoted"
    assert admitted(host, OLD_ID)
    assert info.describe(host, store)["admitted"] is True
    opened = [(verb, unit) for verb, unit, _ in host.told if "front" in unit and verb == "start"]
    assert opened == [("start", SOCKET), ("start", ENROLMENT)]
    host.told.clear()
    assert deploy(host, store, NEW, replace=True) == "promoted"
    assert admitted(host, NEW_ID)
    assert host.told[0] == ("stop", ENROLMENT, 1)
    assert host.told[1][:2] == ("stop", SOCKET)
    assert [verb for verb, unit, _ in host.told if unit == ENROLMENT] == ["stop", "start"]
    assert host.front_opened_by_gate is False


def test_what_the_unit_says_reaches_the_routers_and_holds_no_key():
    host, store = new_host()
    deploy(host, store, spec_dict(8, front={**FRONT, "key_file": "/etc/inferops/kimi/router-key"}))
    text = host.files[f"/etc/systemd/system/{ENROLMENT}"]
    (command,) = setting(text, "ExecStart")
    words = "enrol --worker http://10.0.0.5:8000 --router http://10.0.0.1:8000"
    assert command.endswith(f"{words} --key-credential router-key --config-credential engine.yaml")
    credentials = ["router-key:/etc/inferops/kimi/router-key", "engine.yaml:/etc/inferops/kimi/engine.yaml"]
    assert setting(text, "LoadCredential") == credentials
    assert "[Install]" not in text, "after a boot the runner enrols it, when it is proven"


def test_routers_that_do_not_list_the_server_are_told_loudest_and_the_unit_tries_on():
    host, store = new_host()
    host.broken["enrol --worker"] = "hang"
    assert deploy(host, store, OLD) == "nothing_serves"
    assert "no router lists http://10.0.0.5:8000 after 60 s" in store.attempt()["message"]
    assert store.pointer("promoted") == OLD_ID
    assert host.state(ENROLMENT) == "activating"
    del host.broken["enrol --worker"]
    assert ask(host, store, OLD)["action"] == "none", "a router came back meanwhile"
    assert admitted(host, OLD_ID)


def test_another_router_moves_the_front_without_touching_the_server():
    host, store = watched()
    deploy(host, store, OLD)
    host.told.clear()
    pid = host.pids[host.serving()[0]]
    assert deploy(host, store, {**OLD, "front": {**FRONT, "routers": ["http://10.0.0.2:8000"]}}) == "serving"
    assert [(verb, unit) for verb, unit, _ in host.told if unit == ENROLMENT] == [("stop", ENROLMENT), ("start", ENROLMENT)]
    assert host.pids[host.serving()[0]] == pid
    assert deploy(host, store, {**OLD, "front": {"kind": "socket_proxy", "listen": "10.0.0.5:8000"}}) == "serving"
    assert host.state(ENROLMENT) == "inactive", "an old enrolment would still send clients"
    assert host.is_open()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("reboot", [False, True])
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_killed_after_any_step_it_serves_and_is_enrolled(after, reboot, verdict):
    for step in range(1, 200):
        host, store = new_host()
        deploy(host, store, OLD)
        host.verdicts = [verdict, verdict]
        ask(host, store, NEW, replace=True)
        host.effects, host.crash_at, host.crash_after = 0, step, after
        try:
            run_attempt(host, store)
        except Crash:
            host.crash_at = None
            if reboot:
                host.reboot()
            run_attempt(host, store)
        else:
            if host.effects < step:
                assert step > 40
                break
        finally:
            assert not host.front_opened_by_gate
        outcome = store.attempt()["outcome"]
        assert admitted(host, {"promoted": NEW_ID, "rolled_back": OLD_ID}[outcome])
    else:
        pytest.fail("never came to an end")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"routers": []}, "no router is named"),
        ({"routers": ["10.0.0.1:8000"]}, "front.routers"),
        ({"worker": "http://10.0.0.5"}, "front.worker"),
        ({"worker": None}, "front.worker"),
        ({"listen": "x"}, "front.listen"),
        ({"min_serving_ratio": 60}, "front.min_serving_ratio"),
    ],
)
def test_a_front_that_could_not_work_is_refused(change, named):
    with pytest.raises(InferopsError, match=named):
        ReleaseSpec.from_dict(spec_dict(8, front=FRONT | change))


def listed(host, *others):
    """Make the router list this server and others, given as healthy or not."""
    rows = [{"id": str(at), "url": f"http://10.0.0.{6 + at}:8000", "is_healthy": up} for at, up in enumerate(others)]
    rows.append({"id": "own", "url": FRONT["worker"], "is_healthy": True})
    ask_engine, keys = host.http, []

    def http(url, *, key, body, timeout_s):
        if url == "http://10.0.0.1:8000/workers":
            keys.append(key)
            return Answer(200, json.dumps({"workers": rows}))
        return ask_engine(url, key=key, body=body, timeout_s=timeout_s)

    host.http = http
    return keys


@pytest.mark.parametrize(("others", "fits"), [((True, True), True), ((True, False), False), ((), False)])
def test_a_server_stays_while_too_few_others_would_be_left(others, fits):
    front = {**FRONT, "min_serving_ratio": 0.6, "key_file": "/etc/inferops/kimi/router-key"}
    host, store = new_host()
    host.files["/etc/inferops/kimi/router-key"] = "k\n"
    deploy(host, store, {**OLD, "front": front})
    keys = listed(host, *others)
    if fits:
        assert deploy(host, store, {**NEW, "front": front}, replace=True) == "promoted"
    else:
        with pytest.raises(InferopsError, match="60% are to serve at any time; this one serves on"):
            ask(host, store, {**NEW, "front": front}, replace=True)
        assert admitted(host, OLD_ID)
    assert keys == ["k"]


def test_a_router_that_does_not_tell_is_no_leave():
    front = {**FRONT, "min_serving_ratio": 0.6}
    host, store = new_host()
    deploy(host, store, {**OLD, "front": front})
    with pytest.raises(InferopsError, match="tells its workers in an unknown shape"):
        ask(host, store, {**NEW, "front": front}, replace=True)
    assert admitted(host, OLD_ID)


def test_moving_behind_a_router_keeps_the_address_that_the_own_socket_holds():
    """PID 1 holds a socket unit's address, so nothing but the unit tells whose it is."""
    host, store = new_host()
    direct = spec_dict(8, front={"kind": "socket_proxy", "listen": FRONT["listen"]})
    assert deploy(host, store, direct) == "promoted"
    host.foreign = {8000: Listener("10.0.0.5", 1, "systemd", "init.scope")}
    assert deploy(host, store, OLD) == "serving"
    assert admitted(host, OLD_ID)
    with pytest.raises(InferopsError, match="port 8000 is taken by systemd"):
        ask(host, store, {**OLD, "front": {**FRONT, "listen": "10.0.0.6:8000"}})
