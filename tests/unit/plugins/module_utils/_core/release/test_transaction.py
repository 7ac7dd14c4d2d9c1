"""The transaction on a simulated host: every ending, and every place where it can be killed."""

from __future__ import annotations

import json
import os
import socket

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.ports import Listener, find_listener
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.services import UnitState
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec
from hypothesis import given, settings
from hypothesis import strategies as st

from .releases import PLAN, ask, deploy, new_host, run_attempt, spec_dict
from .simulated_host import INSTANCE, SECRET, Crash, SimulatedHost

PROMOTED_UNIT = f"sglang-{INSTANCE}.service"
OLD, NEW = spec_dict(8), spec_dict(0)
OLD_ID, NEW_ID = ReleaseSpec.from_dict(OLD).id, ReleaseSpec.from_dict(NEW).id


def serves(host, release):
    """The one server that is up is this release, clients reach it, boot starts it."""
    (unit,) = host.serving()
    assert f"/releases/{release} " in host.files[f"/etc/systemd/system/{unit}"]
    assert host.is_open()
    assert f"/releases/{release} " in host.files[f"/etc/systemd/system/{PROMOTED_UNIT}"]
    assert PROMOTED_UNIT in host.enabled
    return True


def nothing_left(host, store):
    """Nothing runs, boot starts nothing, nothing is promoted."""
    return (
        not host.serving()
        and not host.is_open()
        and PROMOTED_UNIT not in host.enabled
        and store.pointer("promoted") is None
        and not [unit for unit in host.enabled if unit.startswith("sglang-")]
    )


def test_first_deploy_promotes_and_admits():
    host, store = new_host()
    assert deploy(host, store, OLD) == "promoted"
    assert serves(host, OLD_ID)
    assert (store.pointer("promoted"), store.pointer("previous")) == (OLD_ID, None)
    assert host.front_opened_by_gate is False


def test_first_deploy_that_fails_stops_and_keeps_its_evidence():
    host, store = new_host()
    host.verdicts = ["fail"]
    assert deploy(host, store, OLD) == "stopped"
    assert nothing_left(host, store)
    assert store.attempt()["message"] == "no earlier release to go back to; stopped"
    assert any("/evidence/journal.txt" in name for name in host.files)
    assert store.release_folder(OLD_ID) / "release.json"


def test_gate_failure_goes_back_to_the_promoted_release():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["fail"]
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert serves(host, OLD_ID)
    assert store.pointer("promoted") == OLD_ID
    assert host.front_opened_by_gate is False


def test_upgrade_that_passes_remembers_the_one_before():
    host, store = new_host()
    deploy(host, store, OLD)
    assert deploy(host, store, NEW, replace=True) == "promoted"
    assert serves(host, NEW_ID)
    assert (store.pointer("promoted"), store.pointer("previous")) == (NEW_ID, OLD_ID)


def test_promote_then_rollback_is_the_identity():
    host, store = new_host()
    deploy(host, store, OLD)
    before = (store.pointer("promoted"), store.pointer("previous"))
    deploy(host, store, NEW, replace=True)
    gates = host.gates
    assert deploy(host, store, None) == "promoted"
    assert (store.pointer("promoted"), store.pointer("previous")) == before
    assert serves(host, OLD_ID)
    assert host.gates == gates


@pytest.mark.parametrize("fault", ["crash", "hang"])
def test_candidate_that_never_gets_ready_goes_back(fault):
    host, store = new_host()
    deploy(host, store, OLD)
    host.broken = {"--pp-async-batch-depth 0": fault}
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert store.attempt()["failed_in"] == "start"
    assert serves(host, OLD_ID)


def test_misresolved_setting_fails_the_proof():
    """R52: what was asked must be what runs."""
    host, store = new_host()
    host.misresolved = {"pp_async_batch_depth": 3}
    assert deploy(host, store, OLD) == "stopped"
    assert store.attempt()["failed_in"] == "proof"
    assert host.gates == 0


def test_inconclusive_gates_once_more_then_goes_back_or_holds():
    for second, how, outcome in (
        ("pass", "go_back", "promoted"),
        ("inconclusive", "go_back", "stopped"),
        ("inconclusive", "hold", "held"),
    ):
        host, store = new_host()
        host.verdicts = ["inconclusive", second]
        assert deploy(host, store, OLD, on_inconclusive=how) == outcome
        assert host.gates == 2
        assert host.is_open() is (outcome == "promoted")


def test_going_back_that_fails_says_that_nothing_serves():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["fail"]
    host.broken = {"--pp-async-batch-depth 8": "crash"}
    assert deploy(host, store, NEW, replace=True) == "nothing_serves"
    assert store.attempt()["message"].startswith("NOTHING SERVES")
    assert not host.is_open()


def test_the_same_again_changes_nothing():
    host, store = new_host()
    deploy(host, store, OLD)
    files, pids, effects = dict(host.files), dict(host.pids), host.effects
    result = ask(host, store, OLD)
    assert (result["action"], result["changed"], host.effects) == ("none", False, effects)
    assert (host.files, host.pids) == (files, pids)
    assert result["gate"]["age_s"] >= 0


def test_changed_plan_gates_again_without_a_restart():
    host, store = new_host()
    deploy(host, store, OLD)
    pids = dict(host.pids)
    again = spec_dict(8, plan={**PLAN, "points": [{"concurrency": 2}]})
    assert ask(host, store, again)["action"] == "gate"
    assert run_attempt(host, store) == "serving"
    assert host.pids[f"sglang-{INSTANCE}-{OLD_ID}.service"] == pids[f"sglang-{INSTANCE}-{OLD_ID}.service"]
    assert ask(host, store, again)["action"] == "none"


def test_promoted_but_stopped_is_started_without_a_gate():
    host, store = new_host()
    deploy(host, store, OLD)
    host.active.clear()
    gates = host.gates
    assert ask(host, store, OLD)["action"] == "start"
    assert run_attempt(host, store) == "serving"
    assert serves(host, OLD_ID)
    assert host.gates == gates


def test_another_release_is_refused_without_replace_and_harms_nothing():
    host, store = new_host()
    deploy(host, store, OLD)
    effects = host.effects
    with pytest.raises(InferopsError, match="may not take its place") as refusal:
        ask(host, store, NEW)
    assert "upgrade.yml" in refusal.value.details["do"]
    assert host.effects == effects
    with pytest.raises(InferopsError, match="do not fit the window"):
        ask(host, store, NEW, replace=True, window_s=60)
    assert host.effects == effects
    assert serves(host, OLD_ID)


def test_a_limit_above_the_bound_is_refused_before_anything_is_touched(fixtures):
    host, store = new_host()
    deploy(host, store, OLD)
    config = json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text(encoding="utf-8"))
    check = {**spec_dict(0).get("check", {}), "effective": {"tp_size": 1, "pp_size": 8}}
    known = {"check": check, "gate_context": {"model_config": config, "bandwidth_gb_s": 1600}}
    before = dict(host.files)

    def asked(limit):
        points = [{"concurrency": 1, "min_output_tokens_per_s": limit}]
        return ask(host, store, spec_dict(0, plan={**PLAN, "points": points}, **known), replace=True)

    with pytest.raises(InferopsError, match="50 tok/s at concurrency 1 cannot be reached"):
        asked(50)
    assert host.files == before and serves(host, OLD_ID)
    asked(48)


def test_plan_with_an_unknown_limit_is_refused_before_anything_is_touched():
    host, store = new_host()
    deploy(host, store, OLD)
    effects = host.effects
    with pytest.raises(InferopsError, match="min_output_token_per_s"):
        ask(host, store, spec_dict(0, plan={**PLAN, "points": [{"concurrency": 1, "min_output_token_per_s": 3}]}), replace=True)
    assert host.effects == effects


def test_second_run_at_the_same_time_is_refused_and_names_the_owner():
    host, store = new_host()
    deploy(host, store, OLD)
    ask(host, store, NEW, replace=True, owner="alice")
    with pytest.raises(InferopsError, match="another release run") as refusal:
        ask(host, store, OLD, owner="bob")
    assert "alice" in refusal.value.details["why"]
    host.locked_by = "runner"
    with pytest.raises(InferopsError, match="another release run"):
        ask(host, store, OLD, owner="bob")


def test_check_mode_predicts_and_touches_nothing():
    host, store = new_host()
    predicted = ask(host, store, OLD, check_mode=True)
    assert host.effects == 0
    real = ask(host, store, OLD)
    assert predicted["changed"] is True
    assert (predicted["action"], predicted["release"], predicted["diff"]) == (real["action"], real["release"], real["diff"])


def test_no_key_is_written_anywhere():
    """The server, the journal and the gate all speak the key; nothing that is kept may."""
    host, store = new_host()
    host.verdicts = ["fail"]
    deploy(host, store, OLD)
    leaks = [name for name, text in host.files.items() if SECRET in text and name != "/etc/inferops/kimi/engine.yaml"]
    assert leaks == []
    assert any("[hidden]" in text for text in host.files.values())


def crash_then_resume(host: SimulatedHost, store, *, reboot: bool) -> str:
    """Let the runner die where the host was told to; then systemd starts it again, after a reboot or not."""
    try:
        return run_attempt(host, store)
    except Crash:
        host.crash_at = None
    if reboot:
        host.reboot()
    return run_attempt(host, store)


@settings(max_examples=250, deadline=None)
@given(
    step=st.integers(1, 90),
    after=st.booleans(),
    reboot=st.booleans(),
    first=st.booleans(),
    verdict=st.sampled_from(["pass", "fail", "inconclusive"]),
    second=st.integers(1, 60),
)
def test_killed_after_any_step_it_ends_in_one_of_the_known_states(step, after, reboot, first, verdict, second):
    host, store = new_host()
    if not first:
        deploy(host, store, OLD)
    host.verdicts = [verdict, verdict]
    assert ask(host, store, NEW, replace=True)["outcome"] == "submitted"
    host.effects, host.crash_at, host.crash_after = 0, step, after
    try:
        outcome = run_attempt(host, store)
    except Crash:
        if reboot:
            host.reboot()
        # And it may be killed a second time, while it resumes.
        host.effects, host.crash_at = 0, second
        outcome = crash_then_resume(host, store, reboot=reboot)
    assert outcome in (store.attempt()["outcome"], "serving")
    outcome = store.attempt()["outcome"]
    if outcome == "promoted":
        assert serves(host, NEW_ID)
        assert store.pointer("promoted") == NEW_ID
        assert store.pointer("previous") == (None if first else OLD_ID)
        assert verdict == "pass"
    elif outcome == "rolled_back":
        assert not first
        assert serves(host, OLD_ID)
        assert store.pointer("promoted") == OLD_ID
    else:
        assert (outcome, first) == ("stopped", True)
        assert nothing_left(host, store)
    promotions = [line for line in store.history() if line["event"] == "promoted" and line["release"] == NEW_ID]
    assert len(promotions) <= 1
    assert all(
        json.loads(line)["text"]
        for line in next(
            text for name, text in host.files.items() if NEW_ID in name and name.endswith("progress.jsonl")
        ).splitlines()
    )


def test_a_held_candidate_gives_way_to_another_release():
    host, store = new_host()
    host.verdicts = ["inconclusive", "inconclusive"]
    assert deploy(host, store, OLD, on_inconclusive="hold") == "held"
    assert deploy(host, store, NEW) == "promoted"
    assert serves(host, NEW_ID)


def test_a_held_candidate_gives_way_to_the_promoted_release():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["inconclusive", "inconclusive"]
    assert deploy(host, store, NEW, replace=True, on_inconclusive="hold") == "held"
    host.foreign = {30000: Listener("127.0.0.1", 9, "python", f"sglang-{INSTANCE}-{NEW_ID}.service")}
    assert deploy(host, store, OLD) == "serving"
    assert serves(host, OLD_ID)


@pytest.mark.parametrize(("port", "variable"), [(30000, "sglang_service_port"), (8000, "sglang_release_front_listen")])
def test_a_port_that_is_taken_is_refused_with_the_holder_before_anything_is_touched(port, variable):
    host, store = new_host()
    host.foreign = {port: Listener("127.0.0.1", 77, "nginx", "nginx.service")}
    with pytest.raises(InferopsError) as caught:
        ask(host, store, OLD)
    assert f"port {port} is taken by nginx, pid 77, nginx.service" in str(caught.value)
    assert variable in str(caught.value)
    assert store.attempt() is None


@pytest.mark.parametrize(
    ("argv", "effective", "delta", "words"),
    [
        (("--nccl-port", "{}"), {}, 0, "--nccl-port (NCCL)"),
        ((), {"dist_init_addr": "10.0.0.1:{}", "nnodes": 2, "node_rank": 0}, 0, "--dist-init-addr (the meeting of the ranks)"),
        ((), {"enable_dp_attention": True, "dist_init_addr": "10.0.0.1:{}"}, 2, "--dist-init-addr (ZeroMQ, detokenizer)"),
    ],
)
def test_a_derived_port_that_is_taken_is_refused_before_the_running_server_is_touched(argv, effective, delta, words):
    """R24, with a socket that really listens."""
    host, store = new_host()
    deploy(host, store, OLD)
    host.listener = find_listener
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        taken = server.getsockname()[1]
        effective = {key: value.format(taken - delta) if isinstance(value, str) else value for key, value in effective.items()}
        wanted = spec_dict(0, tuple(word.format(taken) for word in argv), check={"effective": effective})
        with pytest.raises(InferopsError) as caught:
            ask(host, store, wanted, replace=True)
    assert f"port {taken} is taken by" in str(caught.value) and f"pid {os.getpid()}" in str(caught.value)
    assert words in str(caught.value)
    assert serves(host, OLD_ID)


def test_a_rank_that_answers_no_request_is_refused_before_the_running_server_is_touched():
    host, store = new_host()
    deploy(host, store, OLD)
    with pytest.raises(InferopsError, match="rank 1 of a server over several hosts"):
        ask(host, store, spec_dict(0, check={"effective": {"nnodes": 2, "node_rank": 1}}), replace=True)
    assert serves(host, OLD_ID)
    assert deploy(host, store, spec_dict(0, check={"effective": {"nnodes": 2, "node_rank": 0}}), replace=True) == "promoted"


def test_a_rollback_too_asks_for_its_ports_before_it_stops_anything():
    host, store = new_host()
    deploy(host, store, spec_dict(8, ("--nccl-port", "29500")))
    deploy(host, store, NEW, replace=True)
    host.foreign = {29500: Listener("0.0.0.0", 77, "python")}
    with pytest.raises(InferopsError, match=r"port 29500 is taken by python, pid 77"):
        ask(host, store, None)
    assert serves(host, NEW_ID)


def test_a_derived_port_taken_after_the_drain_stops_the_start_at_once_and_the_old_server_comes_back():
    host, store = new_host()
    deploy(host, store, OLD)
    ask(host, store, spec_dict(0, ("--nccl-port", "29500")), replace=True)
    host.foreign = {29500: Listener("0.0.0.0", 77, "python")}
    assert run_attempt(host, store) == "rolled_back"
    assert "port 29500 is taken by python, pid 77" in store.attempt()["reasons"][0]
    assert serves(host, OLD_ID)


def test_a_port_taken_while_nothing_listened_stops_the_start_at_once():
    host, store = new_host()
    ask(host, store, OLD)
    host.foreign = {30000: Listener("127.0.0.1", 77, "nginx")}
    before = host.now()
    assert run_attempt(host, store) == "stopped"
    assert "port 30000 is taken by nginx, pid 77" in store.attempt()["reasons"][0]
    assert host.now() - before < host.load_s


def test_a_crashed_candidate_is_told_by_its_own_words_not_by_its_next_start():
    host, store = new_host()
    host.broken = {"--pp-async-batch-depth 8": "restarting"}
    assert deploy(host, store, OLD) == "stopped"
    assert "exit status 137 (the engine ended: out of memory)" in store.attempt()["reasons"][0]


def test_new_tools_leave_an_open_front_alone():
    host, store = new_host()
    deploy(host, store, OLD)
    newer = json.loads(json.dumps(OLD).replace("/opt/tools/", "/opt/newer/"))
    before = dict(host.started), dict(host.pids)
    result = ask(host, store, newer)
    assert (result["action"], result["changed"]) == ("none", True)
    assert (host.started, host.pids) == before
    assert host.is_open()
    assert "/opt/newer/inferops.pyz" in host.files[f"/etc/systemd/system/sglang-{INSTANCE}-front.service"]
    assert ask(host, store, newer)["changed"] is False


def test_another_address_for_clients_moves_the_front():
    host, store = new_host()
    deploy(host, store, OLD)
    assert ask(host, store, {**OLD, "front": {"kind": "socket_proxy", "listen": "0.0.0.0:9000"}})["action"] == "start"
    assert run_attempt(host, store) == "serving"
    assert host.is_open()


def test_a_candidate_that_failed_leaves_no_failed_unit_where_another_serves():
    host, store = new_host()
    deploy(host, store, OLD)
    host.broken = {"--pp-async-batch-depth 0": "crash"}
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert "failed" not in host.active.values()


def test_a_gate_cut_off_by_its_deadline_says_so():
    host, store = new_host()
    host.verdicts = ["inconclusive", "inconclusive"]
    host.gate_takes_s = 5000
    assert deploy(host, store, OLD) == "stopped"
    assert "its deadline (timeouts.gate_s)" in store.attempt()["reasons"][0]


def test_what_failed_before_is_forgotten_once_another_release_serves():
    host, store = new_host()
    deploy(host, store, OLD)
    host.active[PROMOTED_UNIT] = "failed"
    assert deploy(host, store, NEW, replace=True) == "promoted"
    assert host.active.get(PROMOTED_UNIT) != "failed"


@pytest.mark.parametrize(("status", "word"), [(243, "LoadCredential="), (203, "ExecStart="), (64, "refuses its arguments")])
def test_an_exit_status_is_told_in_words(status, word):
    assert word in UnitState("failed", "failed", "exit-code", status, 0, 0, "").why_down()


def test_a_disk_that_fills_up_during_the_gate_does_not_keep_the_promoted_release_out_of_service(capsys):
    host, store = new_host()
    deploy(host, store, OLD)
    host.full_from_gate = True
    since = host.clock
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert serves(host, OLD_ID)
    assert host.clock > since + 3600, "recorded when there was room again"
    assert "cannot keep its results" in store.attempt()["reasons"][0]
    assert "recorded as soon as that is possible" in capsys.readouterr().err
    assert [event["event"] for event in store.history()][-1] == "rolled_back"


def test_a_gate_that_could_not_write_on_counts_as_a_full_disk_too():
    host, store = new_host()
    deploy(host, store, OLD)
    host.unwritten = "No space left on device"
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert "cannot keep its results" in store.attempt()["reasons"][0]
    assert host.gates == 2, "one for each release: it is not gated again on a full disk"


def test_a_runner_started_again_on_a_full_disk_still_brings_the_promoted_release_back():
    host, store = new_host()
    deploy(host, store, OLD)
    host.crash_at, host.crash_after = None, False
    ask(host, store, NEW, replace=True)
    attempt = store.attempt() | {"runs": 1, "phase": "gate"}
    store.save_attempt(attempt)
    host.do_stop(host.serving()[0])
    host.disk_full_until = host.clock + 3600
    assert run_attempt(host, store) == "rolled_back"
    assert serves(host, OLD_ID)


def test_too_little_space_is_refused_before_anything_is_touched():
    host, store = new_host()
    deploy(host, store, OLD)
    host.free = 10 << 20
    before = dict(host.files)
    with pytest.raises(InferopsError, match="10 MiB are free") as refused:
        ask(host, store, NEW, replace=True)
    assert refused.value.details["where"] == f"{store.folder} on the host"
    assert host.files == before
    assert serves(host, OLD_ID)


def test_going_back_runs_on_the_tools_of_today():
    host, store = new_host()
    deploy(host, store, OLD)
    deploy(host, store, NEW, replace=True)
    today = {"python": "/opt/tools/2/bin/python", "archive": "/opt/tools/2/inferops.pyz"}
    assert deploy(host, store, None, tools=today) == "promoted"
    assert serves(host, OLD_ID)
    for name in (PROMOTED_UNIT, f"sglang-{INSTANCE}-{OLD_ID}.service", f"inferops-release@{INSTANCE}.service"):
        text = host.files[f"/etc/systemd/system/{name}"]
        assert "/opt/tools/2/" in text and "/opt/tools/bin/" not in text and "/opt/tools/inferops.pyz" not in text, name
    assert store.spec(OLD_ID).id == OLD_ID


def test_going_back_from_a_held_candidate_brings_the_promoted_release_back():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["inconclusive", "inconclusive"]
    assert deploy(host, store, NEW, replace=True, on_inconclusive="hold") == "held"
    asked = ask(host, store, None)
    assert (asked["action"], asked["release"]) == ("start", OLD_ID)
    assert f"release {NEW_ID} was held" in asked["message"]
    assert run_attempt(host, store) == "serving"
    assert serves(host, OLD_ID)


def test_a_promoted_release_that_is_started_again_is_proven_before_clients_come():
    host, store = new_host()
    deploy(host, store, OLD)
    host.active.clear()
    host.misresolved = {"pp_async_batch_depth": 3}
    assert deploy(host, store, OLD) == "nothing_serves"
    assert not host.is_open()


def test_a_front_that_is_closed_on_purpose_is_no_failed_unit():
    host, store = new_host()
    deploy(host, store, OLD)
    socket = f"sglang-{INSTANCE}-front.socket"
    host.verdicts = ["inconclusive", "inconclusive"]
    host.fails_when_stopped.add(socket)
    assert deploy(host, store, NEW, replace=True, on_inconclusive="hold") == "held"
    assert host.active.get(socket) is None


def test_gating_again_says_how_long_clients_wait_and_names_its_phase_when_it_fails():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["fail"]
    again = spec_dict(8, plan={**PLAN, "points": [{"concurrency": 2}]})
    text = ask(host, store, again)["forecast_text"]
    assert "without service (drain 20 s, proof 10 s" in text and "load" not in text and "goes back" not in text
    assert run_attempt(host, store) == "gate_failed"
    assert store.attempt()["failed_in"] == "gate"
    assert serves(host, OLD_ID)


def test_a_server_that_does_not_end_is_waited_for_out_loud_and_then_killed():
    host, store = new_host()
    deploy(host, store, OLD)
    host.verdicts = ["fail"]
    host.hung = {f"sglang-{INSTANCE}-{NEW_ID}.service"}
    assert deploy(host, store, NEW, replace=True) == "rolled_back"
    assert serves(host, OLD_ID)
    attempt = store.attempt()["attempt"]
    lines = host.files[f"{store.release_folder(NEW_ID)}/attempts/{attempt}/progress.jsonl"].splitlines()
    waited = [json.loads(line)["text"] for line in lines if "killed after 2 min" in line]
    assert len(waited) >= 20, "every few seconds"
