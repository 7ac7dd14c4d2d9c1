"""One fake server over two hosts, and the wrapper on either: who answers, who ends whom."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _core
from conftest import FAKES, free_port


@pytest.fixture
def two(start):
    """Rank 0 and rank 1 of one server, loaded."""
    shared = ["--nnodes", "2", "--dist-init-addr", f"127.0.0.1:{free_port()}", "--tp-size", "2"]
    first = start(*shared, "--node-rank", "0", ready=False)
    second = start(*shared, "--node-rank", "1", ready=False)
    second.wait_ready()
    first.wait_ready()
    return first, second


def test_rank_0_alone_answers_requests(two):
    first, second = two
    assert first.get("/v1/models")[0] == 200
    assert [second.get(path)[0] for path in ("/health", "/ping", "/health_generate")] == [200, 200, 200]
    assert [second.get(path)[0] for path in ("/v1/models", "/server_info", "/metrics")] == [404, 404, 404]
    assert second.get("/generate", {"text": "a"})[0] == 404


def test_nobody_loads_before_all_are_there(start):
    first = start("--nnodes", "2", "--dist-init-addr", f"127.0.0.1:{free_port()}", ready=False)
    with pytest.raises(subprocess.TimeoutExpired):
        first.process.wait(1.5)
    assert "Load weight begin" not in first.log


def test_a_stop_begins_with_rank_0_since_the_others_do_not_hear_it(two):
    first, second = two
    second.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        second.process.wait(1)
    assert "SIGTERM received on node_rank 1" in second.log
    first.process.send_signal(signal.SIGTERM)
    assert (first.process.wait(10), second.process.wait(10)) == (0, 0)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_peer_ends_the_other(two, lost):
    two[lost].process.kill()
    assert two[1 - lost].process.wait(10) == -signal.SIGKILL
    assert "a peer is lost" in two[1 - lost].log


def test_the_wrapper_takes_a_loaded_rank_for_ready(start, tmp_path):
    address, port = f"127.0.0.1:{free_port()}", str(free_port())
    shared = ["--nnodes", "2", "--dist-init-addr", address]
    core = next(Path(place).parent for place in _core.__path__)
    code = "import sys; from inferops_fake_engine.main import run; sys.exit(run(sys.argv[1:]))"
    engine = [sys.executable, "-c", code, "--model-path", str(tmp_path / "model"), "--port", port, *shared, "--node-rank", "1"]
    wrapper = [sys.executable, "-c", "import sys; from _core.cli import main; sys.exit(main())", "serve", "--instance", "kimi"]
    wrapper += ["--release-dir", str(tmp_path), "--port", port, "--start-s", "20", "--", *engine]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{core}:{FAKES / 'engine'}",
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "INFEROPS_FAKE_VERSION": "0.5.23",
        "INFEROPS_FAKE_TIMESCALE": "20",
        "INFEROPS_FAKE_CONTROL": str(tmp_path / "none"),
        "INFEROPS_FAKE_NVML_STATE": str(tmp_path / "nvml.state"),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(15)
        first = start(*shared, ready=False)
        with subprocess.Popen(wrapper, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                heard: list[str] = []
                while "READY=1" not in heard:
                    heard += systemd.recv(65536).decode().splitlines()
                assert any("rank 1 is loaded" in line for line in heard)
                first.wait_ready()
                first.process.send_signal(signal.SIGTERM)
                assert process.wait(15) == 0
            finally:
                process.kill()
