"""The wrapper with a real child process: ready only when it generates, refusals and hangs told apart, signals passed on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils import _core

ENGINE = """
import http.server, json, os, signal, sys, threading, time
port, mode = int(sys.argv[1]), sys.argv[2]
print("ServerArgs(api_key='sk-child-1')", os.environ.get("TRITON_CACHE_DIR"), flush=True)
if mode == "refuse":
    print("error: unrecognized arguments: --x", file=sys.stderr); sys.exit(2)
if mode == "crash":
    print("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", flush=True)
    print("Received sigquit from a child process. It usually means the child failed.", flush=True)
    sys.exit(7)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers["Authorization"] != "Bearer sk-child-1":
            return self.send_error(401)
        if self.path == "/health" and mode == "red":
            return self.send_error(503)
        self.answer({"data": [] if mode == "empty" else [{"id": "kimi"}]})
    def do_POST(self):
        if mode == "silent":
            time.sleep(60)
        if mode == "dies later":
            threading.Timer(1, lambda: (print("CUDA error: device lost", flush=True), os._exit(9))).start()
        self.answer({"choices": [{"message": {"content": "one"}}], "usage": {"completion_tokens": 1}})
    def answer(self, data):
        body = json.dumps(data).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, text, *values): print("INFO:     127.0.0.1:5 - " + text % values, flush=True)
    def log_error(self, *a): pass
signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
http.server.ThreadingHTTPServer(("127.0.0.1", port), H).serve_forever()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Systemd:
    """Listens where systemd would, and starts the wrapper as its unit does."""

    def __init__(self, tmp_path: Path, mode: str, start_s: float = 20, stall_s: float = 900) -> None:
        (tmp_path / "engine.py").write_text(ENGINE)
        (tmp_path / "engine.yaml").write_text('api-key: "sk-child-1"\n')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(tmp_path / "notify"))
        self.socket.settimeout(0.2)
        port = str(free_port())
        core = next(Path(place).parent for place in _core.__path__)
        words = [sys.executable, "-c", "import sys; from _core.cli import main; sys.exit(main())", "serve", "--instance", "kimi"]
        words += [
            "--release-dir",
            str(tmp_path),
            "--port",
            port,
            "--served-name",
            "kimi",
            "--start-s",
            str(start_s),
            "--stall-s",
            str(stall_s),
            "--generate-s",
            "2",
        ]
        words += ["--config-credential", "engine.yaml", "--", sys.executable, str(tmp_path / "engine.py"), port, mode]
        env = {
            **os.environ,
            "PYTHONPATH": str(core),
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "CREDENTIALS_DIRECTORY": str(tmp_path),
            "TRITON_CACHE_DIR": f"{tmp_path}/cache/@CARDS@/triton",
        }
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        self.heard: list[str] = []

    def listen(self, until: str | None, seconds: float = 20) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                self.heard += self.socket.recv(65536).decode().splitlines()
            except TimeoutError:
                if until is None and self.process.poll() is not None:
                    return True
            if until is not None and until in self.heard:
                return True
        return False

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode()


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(mode, **how):
        started.append(Systemd(tmp_path, mode, **how))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()
        one.socket.close()


def test_ready_when_it_generates_and_ends_well_on_sigterm(start):
    unit = start("fine")
    assert unit.listen("READY=1")
    unit.process.send_signal(signal.SIGTERM)
    code, out = unit.end()
    assert code == 0
    assert "sk-child-1" not in out + "".join(unit.heard)
    assert any(state.startswith("EXTEND_TIMEOUT_USEC=") for state in unit.heard)


def test_the_engine_keeps_its_kernels_by_cards_and_driver_and_ready_tells_which(start, tmp_path):
    unit = start("fine")
    assert unit.listen("READY=1")
    cards = json.loads((tmp_path / "cache/.ready-kimi").read_text())["cards"]
    unit.process.send_signal(signal.SIGTERM)
    dummy, out = unit.end()
    assert f" {tmp_path}/cache/{cards}/triton" in out.splitlines()[0]
    assert (tmp_path / "cache" / cards / "triton").is_dir()


@pytest.mark.parametrize(("mode", "code"), [("refuse", 64), ("crash", 7)])
def test_end_before_ready_is_told_by_its_exit_status(start, mode, code):
    unit = start(mode)
    assert unit.listen(None)
    assert unit.end()[0] == code
    assert "READY=1" not in unit.heard


@pytest.mark.parametrize(("mode", "code"), [("empty", 66), ("red", 66), ("silent", 65)])
def test_a_port_that_answers_is_not_ready(start, mode, code):
    """R65: no model listed, or /health is red. R59: requests are accepted, tokens never come."""
    unit = start(mode, start_s=3)
    assert unit.listen(None)
    assert unit.end()[0] == code
    assert "READY=1" not in unit.heard


def test_a_warm_up_that_never_ends_is_named_and_the_account_of_our_own_probes_is_not(start):
    unit = start("red", start_s=3)
    assert unit.listen(None)
    unit.end()
    told = [line for line in unit.heard if line.startswith("STATUS=")]
    assert any("warming up: /health answers 503" in line for line in told)
    assert not any('"GET /' in line for line in told)


def test_our_own_probes_in_the_log_are_no_sign_of_life(start):
    unit = start("red", start_s=15, stall_s=2)
    assert unit.listen(None)
    assert unit.end()[0] == 66
    assert "no sign of life" in [line for line in unit.heard if line.startswith("STATUS=")][-1]


def test_the_status_names_the_error_and_not_what_followed_from_it(start):
    unit = start("crash")
    assert unit.listen(None)
    unit.end()
    assert any("exit status 7" in line and "Not enough memory" in line for line in unit.heard if line.startswith("STATUS="))


def test_a_known_cause_is_named_in_the_status(start):
    unit = start("crash")
    assert unit.listen(None)
    unit.end()
    assert "[LOG-OOM-POOL]" in [line for line in unit.heard if line.startswith("STATUS=")][-1]


def test_no_token_within_the_deadline_is_told_as_a_hang(start):
    """R29."""
    unit = start("silent", start_s=3)
    assert unit.listen(None)
    assert unit.end()[0] == 65
    assert "[LOG-HANG]" in [line for line in unit.heard if line.startswith("STATUS=")][-1]


def test_a_server_that_dies_later_does_not_go_on_telling_that_it_generates(start):
    unit = start("dies later")
    assert unit.listen("READY=1")
    assert unit.listen(None)
    assert unit.end()[0] == 9
    last = [line for line in unit.heard if line.startswith("STATUS=")][-1]
    assert "the engine ended (exit status 9)" in last and "device lost" in last


def test_while_no_token_comes_the_status_says_so(start):
    """R59: the last line of loading would be misleading."""
    unit = start("silent", start_s=3)
    assert unit.listen(None)
    assert any("accepts requests, no token for" in line for line in unit.heard if line.startswith("STATUS="))
