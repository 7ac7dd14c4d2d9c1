#!/usr/bin/env python3
"""Record what the real SGLang answers, on a CPU with a tiny random model of Kimi's shape; keep the shapes.

    record_real_engine.py --python ENGINE/bin/python --version 0.5.23 [--work FOLDER] [--oracle-out OUT.json] [--only streams]

ENGINE is an environment with a CPU build of torch and that release of SGLang (``--no-deps``) plus what it imports.  Three
starts: plain, two pipeline stages with a key, and on a port that is taken.  The resolved values for the eight cards come
from executing SGLang's own argument code with the GPU queries replaced (an oracle run, ``--oracle-out``), since a CPU
resolves them differently.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from condense import resolved, server_info, write_json
from metrics import shape as metrics_shape
from probe import PROBES, UNAUTHORIZED, ask_all
from streams import STAGED, plain, record, restarted

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE.parent / "recordings"
KEY = "recorded-key"
ENGINE_ENV = {
    "SGLANG_USE_CPU_ENGINE": "1", "TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1", "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}  # fmt: skip
ARGV = [
    "--load-format",
    "dummy",
    "--device",
    "cpu",
    "--attention-backend",
    "torch_native",
    "--sampling-backend",
    "pytorch",
    "--max-total-tokens",
    "20000",
    "--enable-metrics",
    "--served-model-name",
    "tiny",
    "--tool-call-parser",
    "kimi_k2",
    "--reasoning-parser",
    "kimi_k2",
]


def get(url: str, key: str | None = None) -> tuple[int, bytes]:
    request = Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except HTTPError as refused:
        return refused.code, refused.read()
    except (URLError, OSError):
        return 0, b""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Recorder:
    def __init__(self, python: Path, work: Path) -> None:
        self.python, self.work = python, work
        self.env = os.environ | ENGINE_ENV | {"PYTHONPATH": str(HERE / "overlay")}

    def run(self, *words: str) -> str:
        return subprocess.run([str(self.python), *words], env=self.env, check=True, capture_output=True, text=True).stdout

    def write_model(self) -> Path:
        """Write the tiny model with the engine's interpreter, which has the tokenizer library; return its folder."""
        code = "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import model; model.write_model(pathlib.Path(sys.argv[2]))"
        self.run("-c", code, str(HERE), str(self.work / "model"))
        return self.work / "model"

    def launch(self, port: int, *extra: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.work / f"engine-{port}.log").open("wb") as log:
            words = ["-m", "sglang.launch_server", "--model-path", str(self.work / "model"), *ARGV, "--port", str(port), *extra]
            return subprocess.Popen(
                [str(self.python), *words], env=self.env | env, stdout=log, stderr=subprocess.STDOUT, cwd=self.work
            )

    @contextmanager
    def engine(self, port: int, life: list[Any], *extra: str, **env: str) -> Iterator[str]:
        """A ready engine; ``life`` receives the distinct statuses of /health on the way there."""
        process = self.launch(port, *extra, **env)
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 300
        try:
            while (status := get(f"{url}/health")[0]) != 200:
                if not life or life[-1] != (status or "refused"):
                    life.append(status or "refused")
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"the engine did not get ready; see {self.work}/engine-{port}.log")
                time.sleep(0.2)
            life.append(200)
            yield url
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def drain(recorder: Recorder, port: int) -> dict[str, Any]:
    """SIGTERM while a reply is being streamed: what health says, whether new requests are taken, how both end."""
    url = f"http://127.0.0.1:{port}"
    process = recorder.launch(port)
    while get(f"{url}/health")[0] != 200:
        time.sleep(0.5)
    long = HTTPConnection("127.0.0.1", port, timeout=300)
    long.request(
        "POST",
        "/v1/completions",
        json.dumps({"prompt": [5, 6], "max_tokens": 600, "ignore_eos": True, "stream": True}),
        {"content-type": "application/json"},
    )
    reply = long.getresponse()
    reply.readline()  # the first token is here: the request is under way
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    body = json.dumps({"prompt": [5], "max_tokens": 1}).encode()
    with urlopen(Request(f"{url}/v1/completions", body, {"content-type": "application/json"}), timeout=60) as answer:
        fresh = answer.status
    seen = {"health": get(f"{url}/health")[0], "ready": get(f"{url}/ready")[0], "new_request": fresh}
    seen["stream_finished"] = reply.read().rstrip().endswith(b"[DONE]")
    return seen | {"exit_status": process.wait(300)}


def stop_while_loading(recorder: Recorder, port: int) -> int:
    process, log = recorder.launch(port), recorder.work / f"engine-{port}.log"
    while b"Init parallel begin" not in log.read_bytes() and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


# What a client or the gate sums up, of each rank; kept as told before and after some load.
READ = re.compile(
    r"^sglang:(num_running_reqs|num_queue_reqs|prompt_tokens_total|generation_tokens_total|cuda_graph_passes_total)\b.*"
)
# A log keeps no paths, times or numbers of processes; the line of all arguments is in server_info.json.
UNKEPT = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def told(url: str) -> list[str]:
    return [line for line in get(f"{url}/metrics")[1].decode().splitlines() if READ.match(line)]


def said(log: Path, work: Path) -> list[str]:
    """The lines that SGLang stamped, without the stamp's date, its arguments and this machine's paths."""
    lines = [UNKEPT.sub("[", line) for line in log.read_text(errors="replace").splitlines() if UNKEPT.match(line)]
    kept = [re.sub(r"(/[\w.+-]+){3,}", "/…", line.replace(str(work), "/work")) for line in lines if "server_args=" not in line]
    return list(dict.fromkeys(line[:300] for line in kept))


def record_streams(recorder: Recorder, model: Path, folder: Path) -> None:
    """Keep each stream read by read, and what metrics and log say of them: one stage, then two that gather tokens."""
    tokens = json.loads((model / "tokenizer.json").read_text())["model"]["vocab"]
    rows: list[dict[str, Any]] = []
    logs: dict[str, list[str]] = {}
    port = free_port()
    with recorder.engine(port, []):
        rows += [row for asked in plain(tokens.__getitem__) for row in record(port, asked)]
    staged = ["--pp-size", "2", "--stream-interval", "4"]
    port = free_port()
    with recorder.engine(port, [], *staged, SGLANG_CPU_OMP_THREADS_BIND="0|1") as url:
        before = told(url)
        rows += [row for asked in STAGED for row in record(port, asked)]
        time.sleep(1)
        write_json(folder / "two_stages.json", {"before": before, "after": told(url)})
    logs["two stages"] = said(recorder.work / f"engine-{port}.log", recorder.work)
    for number in (signal.SIGTERM, signal.SIGKILL):
        port = free_port()
        process = recorder.launch(port)
        while get(f"http://127.0.0.1:{port}/health")[0] != 200:
            time.sleep(0.5)
        rows.append(restarted(port, process, number))
        process.wait(60)
        if number is signal.SIGTERM:
            logs[number.name] = said(recorder.work / f"engine-{port}.log", recorder.work)
    write_json(folder / "streams.json", rows)
    write_json(folder / "logs.json", logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--oracle-out", type=Path)
    parser.add_argument("--only", choices=["streams"], help="record nothing else")
    asked = parser.parse_args()
    folder, recorder = RECORDINGS / asked.version, Recorder(asked.python, asked.work)
    asked.work.mkdir(parents=True, exist_ok=True)
    model = recorder.write_model()
    record_streams(recorder, model, folder)
    if asked.only:
        return
    flags = json.loads(recorder.run(str(HERE / "flags.py")))
    write_json(folder / "flags.json", flags)

    life: dict[str, Any] = {"start": [], "unknown_flag_exit_status": 2}
    answers: dict[str, Any] = {}
    with recorder.engine(free_port(), life["start"]) as url:
        answers |= ask_all(url, PROBES)
        write_json(folder / "server_info.json", server_info(json.loads(get(f"{url}/server_info")[1]), flags))
    config = asked.work / "keys.yaml"
    config.write_text(f"api-key: {KEY}\n")
    staged = ["--pp-size", "2", "--pp-async-batch-depth", "1", "--enable-cache-report", "--config", str(config)]
    with recorder.engine(free_port(), [], *staged, SGLANG_CPU_OMP_THREADS_BIND="0|1") as url:
        answers |= {f"cache_report_{k}": v for k, v in ask_all(url, PROBES, KEY).items() if "completion" in k or "chat" in k}
        answers |= ask_all(url, UNAUTHORIZED, KEY)
        write_json(folder / "metrics.json", metrics_shape(get(f"{url}/metrics")[1].decode()))
        info = json.loads(get(f"{url}/server_info", KEY)[1])
        life["launch_command_shows_key"] = KEY in info["launch_command"]
    write_json(folder / "answers.json", answers)
    life["drain"] = drain(recorder, free_port())
    life["sigterm_while_loading_exit_status"] = stop_while_loading(recorder, free_port())
    # A holder that answers: with a silent one the engine's own warm-up waits far longer before it gives up.
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as holder:
        Thread(target=holder.serve_forever, daemon=True).start()
        life["port_taken_exit_status"] = recorder.launch(holder.server_port).wait(400)
        holder.shutdown()
    life["unknown_flag_exit_status"] = recorder.launch(free_port(), "--no-such-flag").wait(120)
    write_json(folder / "life.json", life)
    if asked.oracle_out:
        cases = json.loads(asked.oracle_out.read_text())
        write_json(
            folder / "resolved.json",
            resolved(
                cases if isinstance(cases, list) else cases["cases"],
                version=asked.version,
                hardware="8 x NVIDIA RTX PRO 6000 Blackwell Server Edition (queries replaced below torch)",
                model="KimiK25ForConditionalGeneration",
            ),
        )


if __name__ == "__main__":
    main()
