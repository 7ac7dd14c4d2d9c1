# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The load split over processes: the figures of one process, every request once, and no process outlives the gate."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import workers
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.client_processes import client_processes
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.load import PointLoad
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import Trace
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.throughput import throughput

from .paced_server import Pace, serving
from .traces import trace

QUICK = {
    "input_tokens": 16,
    "output_tokens": 40,
    "min_seconds_per_point": 1.5,
    "max_seconds_per_point": 8,
    "stall_timeout_s": 2,
    "client_processes": 2,
    "default_limits": "none",
}


def no_cards():
    raise NoNvmlError("no NVML in this test")


def gate(pace, folder, points, **options):
    with serving(pace) as url:
        return run_gate(url, GatePlan.from_dict({**QUICK, "points": points, **options}), folder, open_nvml=no_cards)


def requests_of(folder):
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    return [line for line in lines if "request" in line]


def children():
    """Processes of this one that live."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[1] == str(os.getpid()) and "worker" in (path / "cmdline").read_text():
                found.append(int(path.name))
    return sorted(found)


def test_the_figure_is_the_servers_own_pace_whoever_sends(tmp_path):
    pace = Pace(ttft_s=0.1, itl_s=0.01)
    result = gate(pace, tmp_path, [{"concurrency": 5, "min_output_tokens_per_s": 10}])
    point = result["points"][0]
    assert result["verdict"] == "pass", result["reasons"]
    assert point["client"]["processes"] == 2
    assert point["output_tokens_per_s"] == pytest.approx(5 * 40 / (0.1 + 39 * 0.01), rel=0.04)
    assert point["in_flight"]["mean"] == pytest.approx(5, rel=0.04)
    assert point["itl_ms"]["n"] == 39 * point["requests"]["ok"]
    assert point["requests"]["warm_up"] == 10 and pace.most_in_flight <= 5
    counts = point["requests"]
    assert counts["planned"] == counts["ok"] + counts["failed"] + counts["cancelled"]
    sent = requests_of(tmp_path)
    assert sum(line["phase"] == "window" for line in sent) == counts["ok"]
    assert sum(line["phase"] == "drain" for line in sent) == counts["cancelled"]
    prompts = [tuple(body["prompt"]) for body in pace.seen if isinstance(body.get("prompt"), list)]
    assert len(set(prompts)) == len(prompts)
    assert children() == []


def test_what_is_cut_is_kept_as_far_as_it_had_come(tmp_path):
    """No request ends in this window: its figure is all tokens of the cut ones, and none that came after the end."""
    pace = Pace(ttft_s=0.02, itl_s=0.01)
    options = {"output_tokens": 160, "min_seconds_per_point": 1.2, "max_seconds_per_point": 1.2, "stall_timeout_s": 10}
    result = gate(pace, tmp_path, [{"concurrency": 3}], **options)
    assert result["points"], result["reasons"]
    point = result["points"][0]
    start, end = point["window_ns"]
    cut = [line for line in requests_of(tmp_path) if line["phase"] == "drain"]
    assert len(cut) == 3 and {line["status"] for line in cut} == {"cancelled"}
    moments = [moment for line in cut for moment, dummy in line["chunks"]]
    assert len(moments) / ((end - start) / 1e9) == pytest.approx(point["output_tokens_per_s"], rel=0.001)
    # Up to 0.1 s of quiet at the end: a machine that others use, but far less than what a worker tells in one go.
    assert end - 100_000_000 < max(moments) <= end + 20_000_000


def test_arrivals_are_shared_out_and_counted_once(tmp_path):
    point = {"rate": 20, "arrivals": "constant", "max_in_flight": 50, "min_goodput_ratio": 0.9}
    result = gate(Pace(ttft_s=0.05, itl_s=0.005), tmp_path, [point], min_seconds_per_point=2)
    entry = result["points"][0]
    # The machine of the tests is shared with others, and says so.
    assert all("set out late" in reason for reason in result["reasons"]), result["reasons"]
    start, end = entry["window_ns"]
    came = sum(count for line in requests_of(tmp_path) for moment, count in line["chunks"] if start <= moment < end)
    assert entry["output_tokens_per_s"] == pytest.approx(came / ((end - start) / 1e9), rel=1e-4)
    assert entry["output_tokens_per_s"] == pytest.approx(20 * 40, rel=0.25)
    assert entry["client"]["late_ms"]["n"] == entry["requests"]["ok"]
    assert entry["requests"]["held_back"] == 0 and entry["requests"]["cancelled"] == 0
    numbers = [line["request"] for line in requests_of(tmp_path) if line["request"] >= 0]
    assert len(set(numbers)) == len(numbers)


def test_both_processes_hold_their_share(tmp_path, monkeypatch):
    taken = []
    send = workers.LoadWorkers.send

    async def seen(self, *words):
        taken.append(max(len(one.pending) for one in self._processes))
        await send(self, *words)

    monkeypatch.setattr(workers.LoadWorkers, "send", seen)
    gate(Pace(), tmp_path, [{"concurrency": 6, "min_output_tokens_per_s": 1}], min_seconds_per_point=0.5)
    assert max(taken) == 3


def test_every_way_an_answer_can_end_comes_back_from_the_process(tmp_path):
    pace = Pace(ttft_s=0.01, itl_s=0.002, odd={8: "short", 9: "error", 12: "uncounted"})
    result = gate(pace, tmp_path, [{"concurrency": 2}], max_seconds_per_point=3)
    counts = result["points"][0]["requests"]
    assert (counts["short"], counts["failed"], counts["uncounted"]) == (1, 1, 1)
    assert result["verdict"] == "fail" and any("requests failed" in reason for reason in result["reasons"])


def killed(number, folder, *, after="in window"):
    """Send a signal to one worker as soon as progress says so."""

    def act():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            told = (folder / "progress.jsonl").read_text() if (folder / "progress.jsonl").exists() else ""
            if after in told and children():
                os.kill(children()[0], number)
                return
            time.sleep(0.05)

    threading.Thread(target=act, daemon=True).start()


@pytest.mark.parametrize("point", [{"concurrency": 4, "min_output_tokens_per_s": 1}, {"rate": 20}])
def test_a_worker_that_is_killed_leaves_what_was_measured_and_no_verdict(point, tmp_path):
    killed(signal.SIGKILL, tmp_path)
    long = {"min_seconds_per_point": 30, "max_seconds_per_point": 30}
    result = gate(Pace(), tmp_path, [point, {"concurrency": 1}], **long)
    assert result["verdict"] == "inconclusive" and result["finished"] is True
    assert any("load worker 1 of 2 died (signal 9)" in reason for reason in result["reasons"]), result["reasons"]
    assert not any("failed" in reason for reason in result["reasons"])
    assert [entry["ended_by"] for entry in result["points"]] == [workers.LOST]
    assert result["points"][0]["requests"]["ok"] > 0 and result["points"][0]["output_tokens_per_s"] > 0
    assert (tmp_path / "report.html").exists()
    assert children() == []


def test_a_worker_that_is_stopped_is_named_and_killed_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CLOSE_S", 0.5)
    killed(signal.SIGSTOP, tmp_path)
    result = gate(Pace(), tmp_path, [{"concurrency": 4}], min_seconds_per_point=3, max_seconds_per_point=3)
    assert result["verdict"] == "inconclusive"
    assert any("load worker 1 of 2 did not hand over what it had" in reason for reason in result["reasons"]), result["reasons"]
    assert children() == []


def test_a_worker_that_cannot_start_is_no_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    result = gate(Pace(), tmp_path, [{"concurrency": 4, "min_output_tokens_per_s": 1}])
    assert result["verdict"] == "inconclusive"
    assert any("load worker 1 of 2 did not start (status 1" in reason for reason in result["reasons"])


@pytest.mark.parametrize(
    ("plan", "cores", "expected"),
    [
        ({"points": [{"concurrency": 512}]}, 8, 1),
        ({"points": [{"concurrency": 513}]}, 8, 2),
        ({"points": [{"concurrency": 4000}]}, 4, 4),
        ({"points": [{"concurrency": 4000}]}, 1, 1),
        ({"points": [{"concurrency": 64, "min_output_tokens_per_s": 40_000}]}, 8, 3),
        ({"points": [{"rate": 100, "min_goodput_ratio": 0.9}], "output_tokens": 256}, 8, 2),
        ({"points": [{"rate": 2}]}, 8, 1),
        ({"points": [{"concurrency": 16}], "client_processes": 4}, 1, 4),
        ({"points": [{"concurrency": 2}], "client_processes": 4}, 8, 2),
        ({"points": [{"concurrency": 4000}], "client_processes": 1}, 8, 1),
    ],
)
def test_how_many_processes(plan, cores, expected):
    read = GatePlan.from_dict(plan)
    assert client_processes(read, read.points[0], cores=cores) == expected


def test_a_look_at_arrivals_ends_where_the_workers_have_told():
    """Tokens that a worker has not told yet are no hole at the end."""
    second = 1_000_000_000
    going = trace(0, 100, [100] * 38)
    load = PointLoad(8, [[]], rate=1.0, arrivals="constant", window_start_ns=second, going={going})
    load.seen_ns = 4 * second
    told = throughput(load, 0.95, now_ns=5 * second)
    assert told.value == pytest.approx(10, rel=0.05)


def test_what_comes_after_the_cut_is_not_taken_over():
    seen, ours = trace(0, 100, [100] * 9, status="cancelled"), Trace(planned_ns=0)
    ours.status, ours.done_ns = "cancelled", 450_000_000
    workers._become(ours, seen)
    assert (ours.status, ours.done_ns, len(ours.chunks)) == ("cancelled", 450_000_000, 4)
    workers._grow(ours, seen.chunks.times[4:], seen.chunks.counts[4:])
    assert len(ours.chunks) == 4
