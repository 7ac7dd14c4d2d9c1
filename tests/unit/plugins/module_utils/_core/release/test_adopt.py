"""A server that somebody else wrote becomes the first release: read as it runs, its process untouched, its unit the way back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.profile import launch_args, validate_profile
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import info
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.adopt import adopt, read, server_process
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.found import from_text, inventory, take_apart
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.host_real import RealHost
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.ports import Listener
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.runner import ensure_admitted

from .releases import ask, deploy, new_host, run_attempt, spec_dict
from .simulated_host import Crash

OLD = "sglang-old.service"
CANARY = "sk-canary-42"
WORDS = [
    "/opt/engine/bin/python",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/srv/models/kimi",
    "--served-model-name",
    "kimi-k2.6",
]
WORDS += ["--port", "30000", "--host", "0.0.0.0", "--pp-async-batch-depth", "0", "--disable-cuda-graph", "--api-key", CANARY]
TEXT = f"[Service]\nExecStart={' '.join(WORDS)}\nEnvironment=HF_TOKEN={CANARY}\n\n[Install]\nWantedBy=multi-user.target\n"
TOOLS = {"python": "/opt/tools/bin/python", "archive": "/opt/tools/inferops.pyz"}
STUB = "/etc/systemd/system/sglang-kimi.service"


def hand_written():
    host, store = new_host()
    host.files[f"/etc/systemd/system/{OLD}"] = TEXT
    host.enabled.add(OLD)
    host.do_start(OLD)
    pid = host.pids[OLD]
    host.files[f"/proc/{pid}/cmdline"] = "\0".join(WORDS) + "\0"
    host.files[f"/proc/{pid}/environ"] = f"PATH=/bin\0NCCL_DEBUG=WARN\0HF_TOKEN={CANARY}\0"
    host.clock += 100
    return host, store


def take(host, store, **how):
    return adopt(host, store, read(host, OLD), tools=TOOLS, owner="test", **how)


def test_the_process_goes_on_and_its_unit_is_the_promoted_release():
    host, store = hand_written()
    pid, started = host.pids[OLD], dict(host.started)
    answer = take(host, store)
    assert answer["changed"] is True and answer["way_back"] == OLD
    assert (host.pids[OLD], host.started) == (pid, started)
    assert store.pointer("promoted") == answer["release"]
    assert host.enabled == {"sglang-kimi.service", "inferops-release@kimi.service"}
    assert info.describe(host, store)["serving_unit"] == OLD
    assert take(host, store)["changed"] is False
    assert len(store.history()) == 1


def test_nothing_but_the_credentials_file_holds_a_secret():
    host, store = hand_written()
    before = set(host.files)
    answer = take(host, store)
    assert CANARY not in json.dumps(answer) + repr(read(host, OLD))
    holders = [name for name, text in host.files.items() if CANARY in text and name not in before]
    assert holders == ["/etc/inferops/kimi/adopted.yaml"]


def test_check_mode_predicts_and_writes_nothing():
    host, store = hand_written()
    before = dict(host.files)
    assert take(host, store, check_mode=True)["changed"] is True
    assert host.files == before and host.enabled == {OLD}


def test_upgrade_from_it_then_back_by_hand_to_the_old_unit():
    host, store = hand_written()
    old = take(host, store)["release"]
    host.foreign[30000] = Listener("0.0.0.0", 101, "python", OLD)
    with pytest.raises(InferopsError, match="may not take its place"):
        ask(host, store, spec_dict(8))
    assert ask(host, store, spec_dict(8), replace=True)["outcome"] == "submitted"
    host.foreign.clear()
    assert run_attempt(host, store) == "promoted"
    assert host.state(OLD) == "inactive" and OLD not in host.enabled
    assert store.pointer("previous") == old
    assert deploy(host, store, None, tools=TOOLS) == "promoted"
    assert host.serving() == [OLD]
    assert host.files[f"/etc/systemd/system/{OLD}"] == TEXT
    assert store.pointer("promoted") == old


@pytest.mark.parametrize("fault", ["crash", "verdict", "proof"])
def test_a_failing_upgrade_goes_back_to_the_old_unit_and_waits_until_it_serves(fault):
    host, store = hand_written()
    old = take(host, store)["release"]
    host.broken = {"--bad": "crash"} if fault == "crash" else {}
    host.verdicts = ["fail"] if fault == "verdict" else []
    spec = spec_dict(8, extra=("--bad",), **({"expect": {"pp_async_batch_depth": 3}} if fault == "proof" else {}))
    assert deploy(host, store, spec, replace=True) == "rolled_back"
    assert host.serving() == [OLD]
    assert host.clock - host.started[OLD] >= host.load_s
    assert store.pointer("promoted") == old
    assert host.enabled >= {"sglang-kimi.service"} and OLD not in host.enabled


def test_boot_starts_it_through_the_stub():
    host, store = hand_written()
    take(host, store)
    host.reboot()
    ensure_admitted(host, store, lambda text: None)
    assert host.serving() == [OLD]


@pytest.mark.parametrize("after", [False, True])
def test_power_loss_at_any_step_of_an_adoption_leaves_the_server_in_the_boot(after):
    for step in range(1, 30):
        host, store = hand_written()
        host.effects, host.crash_at, host.crash_after = 0, step, after
        try:
            take(host, store)
        except Crash:
            host.crash_at, host.locked_by = None, None
            host.reboot()
            assert host.serving() == [OLD], step
            pid = host.pids[OLD]
            host.files[f"/proc/{pid}/cmdline"] = "\0".join(WORDS)
            host.files[f"/proc/{pid}/environ"] = f"NCCL_DEBUG=WARN\0HF_TOKEN={CANARY}"
            take(host, store)
            assert store.pointer("promoted") and len(store.history()) == 1
            continue
        return
    pytest.fail("never came to its end")


@pytest.mark.parametrize("after", [False, True])
def test_power_loss_at_any_step_of_the_first_upgrade_leaves_one_of_the_two(after):
    for step in range(1, 80):
        host, store = hand_written()
        old = take(host, store)["release"]
        ask(host, store, spec_dict(8), replace=True)
        host.effects, host.crash_at, host.crash_after = 0, step, after
        try:
            run_attempt(host, store)
        except Crash:
            host.crash_at, host.locked_by = None, None
            host.reboot()
            host.clock += 60
            assert run_attempt(host, store) in ("promoted", "rolled_back"), step
            assert len(host.serving()) == 1
            assert (store.pointer("promoted") == old) == (host.serving() == [OLD])
            continue
        return
    pytest.fail("never came to its end")


def test_an_instance_that_has_a_release_is_not_taken_over():
    host, store = hand_written()
    host.do_stop(OLD)
    deploy(host, store, spec_dict(8))
    host.do_start(OLD)
    host.files[f"/proc/{host.pids[OLD]}/cmdline"] = "\0".join(WORDS)
    with pytest.raises(InferopsError, match="has a promoted release already"):
        take(host, store)


def test_a_unit_that_does_not_run_or_is_no_server_is_refused():
    host, store = hand_written()
    host.files[f"/proc/{host.pids[OLD]}/cmdline"] = "/bin/sleep\0001"
    with pytest.raises(InferopsError, match="no SGLang server"):
        take(host, store)
    host.do_stop(OLD)
    with pytest.raises(InferopsError, match="runs no process"):
        take(host, store)


def test_a_server_behind_a_shell_is_found():
    host, _store = hand_written()
    main = host.pids[OLD]
    host.files["/proc/777/cmdline"] = host.files[f"/proc/{main}/cmdline"]
    host.files["/proc/777/environ"] = ""
    host.files[f"/proc/{main}/cmdline"] = "/bin/bash\0/opt/run.sh"
    host.files[f"/proc/{main}/task/{main}/children"] = "777 "
    assert read(host, OLD).pid == 777


def test_a_real_process_behind_a_real_shell_is_found():
    """The words after -c stand for a server; what is read is /proc of this machine."""
    engine = f"'{sys.executable}' -c 'import time; time.sleep(30)' sglang.launch_server --model-path /m --api-key {CANARY}"
    process = subprocess.Popen(["sh", "-c", f"{engine} & wait"], start_new_session=True)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                pid, words = server_process(RealHost(), process.pid)
                break
            except InferopsError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert pid != process.pid
        assert take_apart(words, {}).argv == ("--model-path", "/m")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


DOCKER = """docker run --gpus all --ipc=host -p 8000:30000 -v /srv/models:/models -e NCCL_DEBUG=INFO \\
  --env HF_TOKEN=sk-canary-42 lmsysorg/sglang:v0.5.23 python3 -m sglang.launch_server --model-path /models/kimi --tp 8 \\
  --admin-api-key=sk-canary-42"""
QUADLET = """[Container]
Image=docker.io/lmsysorg/sglang:v0.5.23
Environment=NCCL_DEBUG=INFO HF_TOKEN=sk-canary-42
Exec=python3 -m sglang.launch_server --model-path /models/kimi --tp 8 \\
  --admin-api-key sk-canary-42
"""


@pytest.mark.parametrize("text", [DOCKER, QUADLET])
def test_containers_are_read_from_text(text):
    found = from_text(text)
    assert found.image.endswith("lmsysorg/sglang:v0.5.23")
    assert found.fields == {"model_path": "/models/kimi", "tp_size": 8}
    assert found.env == {"NCCL_DEBUG": "INFO"}
    assert (found.secrets, found.secret_env) == ({"admin_api_key": CANARY}, {"HF_TOKEN": CANARY})
    assert CANARY not in repr(found)


def test_variables_of_a_shell_are_refused():
    with pytest.raises(InferopsError, match="variables of a shell"):
        from_text("docker run x:y python3 -m sglang.launch_server --model-path $MODEL")


def test_the_inventory_is_yaml_that_the_roles_take_and_holds_no_secret():
    host, _store = hand_written()
    running = read(host, OLD)
    text = inventory(running.found, instance="kimi-2", origin=OLD, site_packages="/s", told=["SGA102 error: graphs are off"])
    assert CANARY not in text and "vault_kimi_2_api_key" in text and "#   SGA102" in text
    data = yaml.safe_load(text)
    assert data["sglang_service_api_key"] == "{{ vault_kimi_2_api_key }}"
    assert data["sglang_service_env"] == {"NCCL_DEBUG": "WARN", "HF_TOKEN": "{{ vault_kimi_2_hf_token }}"}
    args = launch_args(validate_profile(data["sglang_service_profile"]), data["sglang_service_args"], {})
    assert args == {"pp_async_batch_depth": 0, "disable_cuda_graph": True}
    assert data["sglang_service_model_path"] == "/srv/models/kimi"
    assert data["sglang_service_port"] == 30000


@pytest.mark.parametrize("flag", ["--api-key", "--api_key", "--api-k", "--admin-api-key", "--ssl-keyfile-password"])
@pytest.mark.parametrize("joined", [True, False])
def test_every_spelling_of_a_secret_is_set_aside(flag, joined):
    words = [f"{flag}={CANARY}"] if joined else [flag, CANARY]
    found = take_apart([*WORDS[:5], *words, "--ssl-keyfile", "/k", "--log-requests"], {})
    assert CANARY not in " ".join(found.argv)
    assert found.argv[-3:] == ("--ssl-keyfile", "/k", "--log-requests")
    assert list(found.secrets.values()) == [CANARY]
