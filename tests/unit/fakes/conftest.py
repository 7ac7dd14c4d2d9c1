"""Start the fake engine as a process of its own, as a unit would, without an installed SGLang."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from gate_process import LONG, Run

FAKES = Path(__file__).resolve().parents[2] / "fakes"
for folder in (FAKES / "engine", FAKES / "record"):
    sys.path.insert(0, str(folder))


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def control(self, **values: Any) -> None:
        fresh = self.folder / "control.new"
        fresh.write_text(json.dumps(values))
        fresh.replace(self.folder / "control.json")

    def get(self, path: str, body: Any = None, *, key: str | None = None, timeout: float = 20) -> tuple[int, bytes]:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        request = Request(self.url + path, None if body is None else json.dumps(body).encode(), headers)
        try:
            with urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read()
        except HTTPError as refused:
            return refused.code, refused.read()
        except ConnectionError:
            return 0, b""
        except OSError as exc:
            if isinstance(getattr(exc, "reason", None), ConnectionError):
                return 0, b""
            raise

    def json(self, path: str, body: Any = None, **kwargs: Any) -> Any:
        return json.loads(self.get(path, body, **kwargs)[1])

    def wait_ready(self, timeout: float = 20) -> None:
        deadline = time.monotonic() + timeout
        while self.get("/health")[0] != 200:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(*argv, timescale=…, ready=True, **control) → Running."""
    started: list[Running] = []
    (tmp_path / "model").mkdir()

    def launch(*argv: str, timescale: float = 20, ready: bool = True, port: int | None = None, **control: Any) -> Running:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        (folder / "control.json").write_text(json.dumps({"start_seconds": 1.0} | control))
        chosen = port or free_port()
        env = os.environ | {
            "PYTHONPATH": str(FAKES / "engine"),
            "INFEROPS_FAKE_VERSION": "0.5.23",
            "INFEROPS_FAKE_TIMESCALE": str(timescale),
            "INFEROPS_FAKE_CONTROL": str(folder / "control.json"),
            "INFEROPS_FAKE_NVML_STATE": str(folder / "nvml.state"),
        }
        words = ["--model-path", str(tmp_path / "model"), "--port", str(chosen), *argv]
        with (folder / "log").open("wb") as log:
            code = "import sys; from inferops_fake_engine.main import run; sys.exit(run(sys.argv[1:]))"
            process = subprocess.Popen([sys.executable, "-c", code, *words], env=env, stdout=log, stderr=subprocess.STDOUT)
        running = Running(process, chosen, folder)
        started.append(running)
        if ready:
            running.wait_ready()
        return running

    yield launch
    for running in started:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGKILL)
        running.process.wait(10)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """gate(url, plan, folder, *words, **environment) → Run."""
    runs: list[Run] = []

    def started(url: str, plan: Any = LONG, folder: Path | None = None, *words: Any, **environment: str) -> Run:
        runs.append(Run(url, folder or tmp_path / f"gate{len(runs)}", plan, *words, **environment))
        return runs[-1]

    yield started
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.wait(10)
        run.log.close()


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    built = subprocess.run(
        [sys.executable, str(FAKES / "build"), "nvml", str(folder)], check=True, capture_output=True, text=True
    )
    return Path(built.stdout.strip())
