"""Gates on the fake engine without a host: the demo's server and cards as processes of this machine, in real time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .places import REPOSITORY

FAKES = REPOSITORY / "tests" / "fakes"
PROFILE = REPOSITORY / "roles" / "sglang_service" / "files" / "profiles" / "k2_6_pp8_rtx_pro_6000.yml"
MODEL = REPOSITORY / "tests" / "fixtures" / "models" / "kimi_k2_6" / "config.json"
VERSION = "0.5.23"
LOADING_S = 60


@dataclass(frozen=True)
class Scene:
    """A server as somebody left it, and how its gate ends. ``asked`` are fields laid over the profile's (null takes one out)."""

    asked: dict[str, Any] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    killed_after_s: float | None = None


SHORT = {"points": [{"concurrency": 1, "min_output_tokens_per_s": 33.8}, {"concurrency": 16, "min_output_tokens_per_s": 148.5}]}
SCENES = {
    # The demo's first act: graphs off, no depth.
    "fail": Scene({"pp_async_batch_depth": None, "disable_cuda_graph": True}),
    "pass": Scene(),
    "inconclusive": Scene(control={"throttle": {"factor": 1.2, "reasons": ["sw_thermal"], "gpus": [3]}}, plan=SHORT),
    "answers": Scene(control={"tool_calls": "broken_json"}, plan={**SHORT, "correctness": {"graded": {"items": 60}}}),
    "arrivals": Scene(
        plan={
            "max_seconds_per_point": 60,
            "points": [
                {"concurrency": 1, "min_output_tokens_per_s": 33.8},
                {"rate": 0.2, "min_goodput_ratio": 0.9, "max_ttft_p90_ms": 4000},
                {"rate": 0.5, "arrivals": "constant", "max_ttft_p90_ms": 4000},
            ],
        }
    ),
    "killed": Scene(killed_after_s=40),
}


def play(name: str, work: Path) -> Path:
    """Run the gate of one scene; return its result folder, reports included."""
    scene, folder = SCENES[name], work / name
    folder.mkdir(parents=True, exist_ok=True)
    profile = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    asked = {key: value for key, value in {**profile["topology"], **profile["args"], **scene.asked}.items() if value is not None}
    (folder / "plan.json").write_text(json.dumps({**profile["gate"]["plan"], **scene.plan}), encoding="utf-8")
    context = {
        "model_config": json.loads(MODEL.read_text(encoding="utf-8")),
        "bandwidth_gb_s": profile["hardware"]["bandwidth_gb_s"],
        "gpu_count": profile["hardware"]["gpu_count"],
        "about": {"asked": asked},
    }
    (folder / "context.json").write_text(json.dumps(context), encoding="utf-8")
    library = subprocess.run([sys.executable, FAKES / "build", "nvml", work], check=True, text=True, capture_output=True).stdout
    cards = {"INFEROPS_FAKE_NVML_STATE": str(folder / "cards"), "INFEROPS_FAKE_NVML_CONF": str(folder / "no.conf")}
    arguments = ["--served-model-name", profile["model"]["served_name"]]
    for option, value in asked.items():
        arguments += [f"--{option.replace('_', '-')}"] + ([] if value is True else [str(value)])
    with server(arguments, scene.control, folder, cards) as url:
        out = folder / "gate"
        words = ["gate", "--base-url", url, "--plan", folder / "plan.json", "--context", folder / "context.json", "--out", out]
        here = {"INFEROPS_PYTHON": sys.executable, "LD_LIBRARY_PATH": str(Path(library.strip()).parent), **cards}
        with (folder / "terminal.txt").open("w", encoding="utf-8") as told:
            gate = subprocess.Popen([REPOSITORY / "tools" / "inferops", *words], env=os.environ | here, stdout=told)
            try:
                gate.wait(scene.killed_after_s)
            except subprocess.TimeoutExpired:
                gate.kill()
                gate.wait()
    if scene.killed_after_s is not None:
        subprocess.run([REPOSITORY / "tools" / "inferops", "report", out], check=True, env=os.environ | here)
    return out


@contextlib.contextmanager
def server(arguments: Sequence[str], control: Mapping[str, Any], folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run the fake engine on a free port, its files in the folder; give its address once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "model").mkdir(exist_ok=True)
    (folder / "control.json").write_text(json.dumps({"start_seconds": 1.0, **control}), encoding="utf-8")
    words = ["--model-path", str(folder / "model"), "--port", str(port), *arguments]
    more = {
        "PYTHONPATH": str(FAKES / "engine"),
        "INFEROPS_FAKE_VERSION": VERSION,
        "INFEROPS_FAKE_CONTROL": str(folder / "control.json"),
        **environment,
    }
    program = "import sys; from inferops_fake_engine.main import run; sys.exit(run(sys.argv[1:]))"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", program, *words], env=os.environ | more, stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LOADING_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (OSError, urllib.error.URLError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(
                    f"the server is not there: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
                ) from None
            time.sleep(0.2)
