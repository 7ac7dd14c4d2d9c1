"""The front: on SIGTERM it takes no new client and lets an answer in flight end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from ansible_collections.inferops.sglang.plugins.module_utils import _core

# systemd passes the socket as descriptor 3 and names the process it is for.
STARTER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
from _core.release.front import main
sys.exit(main(sys.argv[2]))
"""


def test_drain_lets_the_open_answer_end_and_takes_no_new_client(tmp_path):
    core = next(Path(place).parent for place in _core.__path__)
    engine = socket.create_server(("127.0.0.1", 0))
    front = socket.create_server(("127.0.0.1", 0))
    address = front.getsockname()
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(tmp_path / "notify"))
    notify.settimeout(10)
    finish = threading.Event()

    def serve() -> None:
        connection, _ = engine.accept()
        connection.sendall(b"first ")
        finish.wait(10)
        connection.sendall(b"last")
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    words = [sys.executable, "-c", STARTER, str(front.fileno()), f"127.0.0.1:{engine.getsockname()[1]}"]
    env = {**os.environ, "PYTHONPATH": str(core), "NOTIFY_SOCKET": str(tmp_path / "notify")}
    process = subprocess.Popen(words, env=env, pass_fds=[front.fileno()])
    front.close()
    try:
        assert b"READY=1" in notify.recv(4096)
        client = socket.create_connection(address, 5)
        assert client.recv(6) == b"first "
        process.send_signal(signal.SIGTERM)
        assert b"STOPPING=1" in notify.recv(4096)
        late = None
        try:
            late = socket.create_connection(address, 2)
            refused = False
        except OSError:
            refused = True
        finish.set()
        assert client.recv(100) == b"last"
        assert client.recv(1) == b""
        assert refused, late
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        notify.close()
