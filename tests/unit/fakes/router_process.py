"""The real sglang-router as a process: the wheel of the role's lock, unpacked once, started by the role's own program."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import wheels
from ansible_collections.inferops.sglang.plugins.module_utils._core.router.api import send

FILES = Path(__file__).resolve().parents[3] / "roles" / "sglang_router" / "files"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def site_packages() -> Path:
    """Return the folder with the package, fetched by the lock's hashes and unpacked once."""
    cache = wheels.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / "sglang-router-0.3.2"
    with (cache / ".lock-router").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as place:
                words = ["download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes", "-d", place]
                subprocess.run([sys.executable, "-m", "pip", *words, "-r", FILES / "router.lock"], check=True)
                (wheel,) = Path(place).glob("*.whl")
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(Path(place, "unpacked"))
                shutil.move(Path(place, "unpacked"), folder)
    return folder


class RouterProcess:
    """A router on loopback; ``keys`` go the way systemd hands them over."""

    def __init__(self, folder: Path, port: int, metrics_port: int, *, keys: dict | None = None, **fields: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.url, self.metrics = folder, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics_port}/metrics"
        config = {"host": "127.0.0.1", "port": port, "prometheus_host": "127.0.0.1", "prometheus_port": metrics_port}
        config |= {"policy": "round_robin", "health_check_interval_secs": 1, "log_level": "info", "history_backend": "none"}
        (folder / "config.json").write_text(json.dumps(config | fields))
        self.env = {**os.environ, "PYTHONPATH": str(site_packages())}
        if keys:
            (folder / "keys.json").write_text(json.dumps(keys))
            self.env["CREDENTIALS_DIRECTORY"] = str(folder)
        self.words = [sys.executable, str(FILES / "launch.py"), str(folder / "config.json")]
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.words, env=self.env, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while send("GET", f"{self.url}/liveness", None, None)[0] != 200:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self, *, kill: bool = False) -> int:
        (self.process.kill if kill else self.process.terminate)()
        return self.process.wait(20)
