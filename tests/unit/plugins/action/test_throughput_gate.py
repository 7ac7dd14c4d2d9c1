# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action throughput_gate: starts, follows while the process lives and renews its lease, collects."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.inferops.sglang.plugins.action import throughput_gate

from .fake import ONE, TWO, Screen, action

ARGS = {"base_url": "http://127.0.0.1:1", "plan": {}, "out_dir": "/x"}
VERDICT = {"verdict": "pass", "changed": False}


@pytest.fixture
def running(tmp_path):
    """Start a process that writes two lines of progress and ends; return the answer of the module that started it."""
    progress, lease = tmp_path / "progress.jsonl", tmp_path / "lease"
    lease.touch()
    os.utime(lease, (1, 1))
    lines = "".join(json.dumps({"text": f"gate  {number}"}) + "\n" for number in (1, 2))
    program = f"import time; time.sleep(0.4); open({str(progress)!r}, 'w').write({lines!r}); time.sleep(0.4)"
    process = subprocess.Popen([sys.executable, "-c", program])
    yield {"run_id": "r1", "pid": process.pid, "progress": str(progress), "lease": str(lease)}
    process.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(throughput_gate, "POLL_S", 0.05)


@pytest.mark.parametrize(("hosts", "head"), [(ONE, "  "), (TWO, "  a: ")])
def test_it_is_followed_to_its_end_and_then_collected(running, monkeypatch, hosts, head):
    screen = Screen(monkeypatch)
    pid = running["pid"]
    plugin = action(throughput_gate.ActionModule, ARGS, [running, VERDICT])
    # A child that nobody waits for stays as a zombie, which a gate on a host never is: reap it.
    poll = plugin._poll
    monkeypatch.setattr(plugin, "_poll", lambda *args: (_reap(pid), poll(*args))[1])
    assert plugin.run(task_vars=hosts)["verdict"] == "pass"
    assert screen.lines == [f"{head}gate  1", f"{head}gate  2"]
    assert plugin.asked == [{**ARGS, "wait": False}, {**ARGS, "run_id": "r1"}]
    assert Path(running["lease"]).stat().st_mtime > 1, "the lease was renewed"


def _reap(pid):
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


@pytest.mark.parametrize(
    ("args", "check_mode"), [({**ARGS, "wait": False}, False), ({**ARGS, "run_id": "r1"}, False), (ARGS, True)]
)
def test_what_is_not_to_be_followed_is_handed_to_the_module_alone(args, check_mode):
    plugin = action(throughput_gate.ActionModule, args, [VERDICT], check_mode=check_mode)
    assert plugin.run(task_vars=ONE)["verdict"] == "pass"
    assert plugin.asked == [args]


def test_a_gate_that_does_not_start_ends_there():
    plugin = action(throughput_gate.ActionModule, ARGS, [{"failed": True, "msg": "no"}])
    assert plugin.run(task_vars=ONE)["msg"] == "no"


def test_a_lost_connection_is_tried_again_and_given_up_in_the_end(running, monkeypatch):
    Screen(monkeypatch)
    monkeypatch.setattr(throughput_gate.Live, "warn", lambda self, text: warned.append(text))
    warned: list[str] = []

    def lose(command):
        raise AnsibleConnectionFailure("gone")

    plugin = action(throughput_gate.ActionModule, ARGS, [running])
    monkeypatch.setattr(plugin, "_low_level_execute_command", lose)
    with pytest.raises(AnsibleConnectionFailure):
        plugin.run(task_vars=ONE)
    assert len(warned) == throughput_gate.LOST_POLLS - 1
