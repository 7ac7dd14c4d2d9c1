# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A gate of its own process: followed it finishes, left alone it ends by itself; two never load one server."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import detached
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.lease import Lease, only_gate

from .paced_server import Pace, serving

PLAN = {
    "input_tokens": 8,
    "output_tokens": 10,
    "min_seconds_per_point": 0.2,
    "max_seconds_per_point": 3,
    "points": [{"concurrency": 1, "min_output_tokens_per_s": 1}],
}
LONG = {**PLAN, "min_seconds_per_point": 60, "max_seconds_per_point": 60}


def start(url, folder, plan, lease_s=30.0):
    return detached.start(folder, base_url=url, plan=plan, context={}, api_key_file=None, lease_s=lease_s)


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def measured(folder):
    return lambda: (folder / "progress.jsonl").exists() and "in window" in (folder / "progress.jsonl").read_text()


def test_lease_expires_without_followers(tmp_path):
    moment = [1000.0]
    lease = Lease(tmp_path / "lease", 10, now=lambda: moment[0])
    assert lease.expired()
    lease.renew()
    moment[0] += 9
    assert not lease.expired()
    moment[0] += 2
    assert lease.expired()


def test_two_gates_never_load_one_server(tmp_path):
    both = only_gate("http://a", folder=tmp_path), only_gate("http://b", folder=tmp_path)
    again = only_gate("http://a", folder=tmp_path)
    with both[0], both[1], pytest.raises(InferopsError, match="another gate"), again:
        pass
    with only_gate("http://a", folder=tmp_path):
        pass


def test_whoever_gates_first_leaves_a_lock_that_every_other_login_can_take(tmp_path):
    before = os.umask(0o077)
    try:
        with only_gate("http://a", folder=tmp_path):
            pass
    finally:
        os.umask(before)
    (lock,) = tmp_path.iterdir()
    assert lock.stat().st_mode & 0o777 == 0o644
    # As in /tmp, where the kernel refuses even root to open with O_CREAT what another login has made.
    tmp_path.chmod(0o1777)
    if os.geteuid() == 0:
        os.chown(lock, 65534, 65534)
    lock.chmod(0o444)
    first, second = (only_gate("http://a", folder=tmp_path) for dummy in range(2))
    with first, pytest.raises(InferopsError, match="another gate"), second:
        pass


def test_followed_run_returns_its_result_and_only_its_own(tmp_path):
    with serving(Pace(ttft_s=0.05, itl_s=0.002)) as url:
        run = start(url, tmp_path, PLAN)
        with pytest.raises(InferopsError, match="not in this folder"):
            detached.attach(tmp_path, "other")
        result = detached.follow(detached.attach(tmp_path, run.run_id), 30)
    assert result["verdict"] == "pass"
    assert not run.running()


def test_nobody_follows_so_it_ends_and_keeps_what_it_has(tmp_path):
    with serving(Pace(ttft_s=0.05, itl_s=0.002)) as url:
        run = start(url, tmp_path, LONG, lease_s=4.0)
        wait_for(lambda: not run.running())
    result = detached.outcome(run)
    assert result["verdict"] == "inconclusive"
    assert any("interrupted" in reason for reason in result["reasons"])
    assert (tmp_path / "report.html").exists()


def test_killed_run_leaves_a_readable_folder_that_is_no_pass(tmp_path):
    with serving(Pace(ttft_s=0.05, itl_s=0.002)) as url:
        run = start(url, tmp_path, LONG)
        wait_for(measured(tmp_path))
        os.kill(run.pid, signal.SIGKILL)
        wait_for(lambda: not run.running())
    result = detached.outcome(run)
    assert result["verdict"] == "inconclusive"
    assert "died" in result["reasons"][-1]
    whole = (tmp_path / "samples.jsonl").read_text().splitlines()[:-1]
    assert all(json.loads(line) for line in whole)


def test_what_the_process_could_not_do_is_raised_where_it_is_followed(tmp_path):
    run = start("http://127.0.0.1:9", tmp_path, PLAN)
    with pytest.raises(InferopsError, match="cannot be reached"):
        detached.follow(run, 30)


def test_a_wrong_plan_starts_nothing(tmp_path):
    with pytest.raises(InferopsError, match="min_token"):
        start("http://127.0.0.1:9", tmp_path / "out", {"points": [{"concurrency": 1, "min_token": 1}]})
    assert not (tmp_path / "out").exists()


def test_a_prompt_file_that_cannot_be_sent_starts_nothing_r98(tmp_path):
    with pytest.raises(InferopsError, match="the prompt file cannot be read"):
        start("http://127.0.0.1:9", tmp_path / "out", {**PLAN, "prompts": {"file": str(tmp_path / "absent")}})
    assert not (tmp_path / "out").exists()
