# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything that can die while a gate runs, with real processes: a readable partial result, the right exit status, nothing left.

R93: 0 pass, 1 fail, 2 could not run, 3 inconclusive; whoever only looks at the status is told the truth. What cards and their
driver can do is in test_gate_cards.py, a gate that nobody follows any more in test_detached.py of the gate.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
from gate_process import IN_WINDOW, KIMI, LONG, PLAN, PROGRAM, said

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not part of the released collection")


class Relay(threading.Thread):
    """A port of its own that passes bytes on, until the network is cut: silent (nothing moves) or shut."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.target, self.silent, self.pairs = port, threading.Event(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.pairs.append((client, server))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                while self.silent.is_set():
                    time.sleep(0.05)
                sink.sendall(data)
        except OSError:
            pass

    def shut(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for pair in self.pairs:
            for end in pair:
                end.close() if end.fileno() < 0 else end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("change", "status", "verdict"),
    [
        pytest.param({}, 0, "pass", id="R93 pass"),
        pytest.param({"points": [{"concurrency": 1, "min_output_tokens_per_s": 1e6}]}, 1, "fail", id="R93 fail"),
        pytest.param(
            {"points": [{"concurrency": 1, "min_ratio_to_promoted": 1}], "max_seconds_per_point": 1},
            3,
            "inconclusive",
            id="R93 inconclusive",
        ),
        pytest.param({"model": "another"}, 2, "inconclusive", id="R93 could not run"),
    ],
)
def test_the_exit_status_is_the_verdict(start, gate, change, status, verdict):
    run = gate(start(*KIMI, timescale=50).url, {**PLAN, **change})
    assert run.ended() == status, run.log.seek(0) or run.log.read()
    assert run.result()["verdict"] == verdict


def test_a_plan_that_cannot_be_meant_runs_nothing(start, gate):
    run = gate("http://127.0.0.1:9", {**PLAN, "points": []})
    assert run.ended() == 2
    assert not run.out.exists()


@pytest.mark.parametrize("client_processes", [1, 3])
def test_the_client_is_killed(start, gate, client_processes):
    running = start(*KIMI, timescale=50)
    points = [{"concurrency": 4}]
    run = gate(running.url, {**LONG, "points": points, "client_processes": client_processes}).until(IN_WINDOW)
    assert len(run.processes()) == (1 if client_processes == 1 else 4)
    run.process.kill()
    assert run.ended() == -signal.SIGKILL
    assert run.result()["verdict"] == "inconclusive" and run.result()["finished"] is False
    assert "unfinished" in run.rendered()
    assert running.get("/health")[0] == 200
    # What it held is free again: the next gate of this server runs.
    assert gate(running.url, {**PLAN, "points": PLAN["points"][:1]}).ended() == 0


def test_the_server_is_killed(start, gate):
    running = start(*KIMI, timescale=50)
    run = gate(running.url).until(IN_WINDOW)
    running.process.kill()
    assert run.ended() == 1
    assert run.result()["verdict"] == "fail" and said(run, "connection lost")
    assert "fail" in run.rendered()


@pytest.mark.parametrize(("cut", "reason"), [("silent", "within 3 s"), ("shut", "connection lost")])
def test_the_network_is_cut(start, gate, cut, reason):
    relay = Relay(start(*KIMI, timescale=50).port)
    run = gate(relay.url, {**LONG, "points": [{"concurrency": 4}]}).until(IN_WINDOW)
    relay.silent.set() if cut == "silent" else relay.shut()
    assert run.ended() == 1
    assert said(run, reason), run.result()["reasons"]
    run.rendered()


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1400k", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_the_disk_is_full(start, gate, small_disk):
    running = start(*KIMI, timescale=50)
    run = gate(running.url, {**LONG, "output_tokens": 256, "points": [{"concurrency": 16}]}, small_disk)
    assert run.ended() == 3
    assert run.result()["unwritten"] == "No space left on device"
    assert said(run, "the result folder could not be written any more")
    lines = (run.out / "samples.jsonl").read_text().splitlines()
    assert lines and all(json.loads(line) for line in lines)
    assert (run.out / "report.html").exists(), "the room held in reserve is for the reports"
    assert running.get("/health")[0] == 200


def test_no_room_at_all_is_told_before_any_load(start, gate, small_disk):
    (small_disk / "taken").write_bytes(b"x" * 1_000_000)
    running = start(*KIMI, timescale=50)
    run = gate(running.url, PLAN, small_disk)
    assert run.ended() == 2
    assert running.json("/v1/models")["data"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_keeps_what_it_has(start, gate, number):
    run = gate(start(*KIMI, timescale=50).url).until(IN_WINDOW)
    run.process.send_signal(number)
    assert run.ended() == 3
    assert run.result()["finished"] is True and said(run, "interrupted")
    run.rendered()


def test_a_load_worker_is_killed(start, gate):
    run = gate(start(*KIMI, timescale=50).url, {**LONG, "points": [{"concurrency": 4}], "client_processes": 2}).until(IN_WINDOW)
    os.kill(run.processes()[-1], signal.SIGKILL)
    assert run.ended() == 3
    assert run.result()["finished"] is True and run.result()["points"][0]["requests"]["ok"] > 0
    assert said(run, "load worker 2 of 2 died (signal 9): what had been measured until then is kept")
    run.rendered()


def test_ctrl_c_reaches_the_load_workers_too_and_all_that_they_have_is_kept(start, gate):
    run = gate(start(*KIMI, timescale=50).url, {**LONG, "points": [{"concurrency": 4}], "client_processes": 2}).until(IN_WINDOW)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.ended() == 3
    assert said(run, "interrupted") and not said(run, "load worker")


def test_a_client_that_was_stopped_for_a_while_does_not_pass(start, gate):
    """As a suspended machine would: the figure has a hole that is not the server's."""
    plan = {**PLAN, "points": PLAN["points"][:1], "min_seconds_per_point": 2, "stall_timeout_s": 30}
    run = gate(start(*KIMI, timescale=50).url, plan).until(IN_WINDOW)
    run.process.send_signal(signal.SIGSTOP)
    time.sleep(3.4)
    run.process.send_signal(signal.SIGCONT)
    assert run.ended() in (1, 3)
    assert said(run, "the load client was not run for")
