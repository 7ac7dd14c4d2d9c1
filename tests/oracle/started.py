#!/usr/bin/env python3
"""Start the real server once per command line and hold what it resolved against both tiers of the check.

    tests/oracle/started.py --python ENGINE/bin/python --model FOLDER [--only N] [--out FILE]

ENGINE has SGLang for a processor with the stand-ins (tests/lab/lab wheelhouse --cpu), FOLDER the tiny model. One server at a
time; a line that is in FILE already is not run again, so that it may be ended and started again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "plugins" / "module_utils"))

from _core.args.check import check  # noqa: E402
from _core.args.live.ask import Interpreter  # noqa: E402
from _core.release.proof import NOT_COMPARED, flatten, same  # noqa: E402

FIXTURE = REPOSITORY / "tests" / "fixtures" / "started.json"
ENV = {"SGLANG_USE_CPU_ENGINE": "1", "TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1", "HF_HUB_OFFLINE": "1"}
ENV["OMP_NUM_THREADS"] = "1"
BASE = ("--load-format", "dummy", "--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch")
BASE += ("--max-total-tokens", "20000", "--skip-server-warmup")
READY_S = 240


# Every setting that a processor can hold, alone; then several processes.
LINES = """
--enable-metrics
--chunked-prefill-size 2048
--chunked-prefill-size -1
--disable-radix-cache
--max-running-requests 4
--max-running-requests 64
--schedule-policy lpm
--schedule-policy fcfs
--schedule-policy dfs-weight
--schedule-conservativeness 0.5
--page-size 1
--page-size 16
--mem-fraction-static 0.5
--context-length 4096
--dtype bfloat16
--dtype float32
--disable-overlap-schedule
--disable-cuda-graph
--tool-call-parser kimi_k2
--reasoning-parser kimi_k2
--enable-cache-report
--served-model-name other
--max-prefill-tokens 1024
--stream-interval 4
--log-level warning
--decode-log-interval 10
--watchdog-timeout 600
--enable-mixed-chunk
--skip-tokenizer-init
--grammar-backend none
--grammar-backend xgrammar
--random-seed 7
--enable-deterministic-inference
--num-continuous-decode-steps 2
--radix-eviction-policy lfu
--kv-cache-dtype auto
--api-key k
--triton-attention-num-kv-splits 4
--disable-shared-experts-fusion
--enable-request-time-stats-logging
--preferred-sampling-params '{"temperature": 0}'
--tokenizer-mode auto
--attention-backend intel_amx
--constrained-json-whitespace-pattern x
--prefill-max-requests 2
--pp-size 2
--pp-size 2 --pp-async-batch-depth 1
--pp-size 2 --chunked-prefill-size 1024
--pp-size 2 --max-running-requests 8
--pp-size 2 --pp-max-micro-batch-size 2
--pp-size 2 --enable-metrics --enable-cache-report
--tp-size 2
"""
FIRST = ("--disable-radix-cache", "--disable-overlap-schedule", "--page-size 16")
SECOND = ("--chunked-prefill-size 512", "--max-running-requests 2", "--enable-mixed-chunk", "--enable-metrics")


def lines() -> list[tuple[str, ...]]:
    """Return the further words of each command line, none first, pairs last."""
    pairs = [f"{one} {two}" for one in FIRST for two in SECOND]
    return [tuple(shlex.split(line)) for line in ["", *LINES.strip().splitlines(), *pairs]]


def resolved(python: Path, model: Path, words: tuple[str, ...], log: Path) -> dict[str, Any] | str:
    """Return /server_info of a server started with these words, or how it ended."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "sglang.launch_server", "--model-path", model, "--port", str(port), *BASE, *words]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, **environment(words)},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    deadline = time.monotonic() + READY_S
    try:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                key = {"Authorization": "Bearer k"} if "--api-key" in words else {}
                return ask(port, key)
            except (URLError, OSError, ValueError):
                time.sleep(0.5)
        said = [line.strip() for line in log.read_text(errors="replace").splitlines() if "Error" in line]
        return f"status {process.poll()}: {said[-1] if said else 'nothing said'}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(port: int, headers: dict[str, str]) -> dict[str, Any]:
    with urlopen(Request(f"http://127.0.0.1:{port}/server_info", headers=headers), timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def environment(words: tuple[str, ...]) -> dict[str, str]:
    several = "--pp-size" in words or "--tp-size" in words
    return {**ENV, **({"SGLANG_CPU_OMP_THREADS_BIND": "0|1"} if several else {})}


def compare(python: Path, model: Path, words: tuple[str, ...], work: Path) -> dict[str, Any]:
    """Return one row: outcome, how many fields were compared, and each that differs, by tier."""
    env = environment(words)
    site = next((python.parents[1] / "lib").glob("python3*/site-packages"))
    argv = ["--model-path", str(model), *BASE, *words]
    config = json.loads((model / "config.json").read_text())
    static = check(argv, source_root=site, facts={"platform": "cpu"}, model_config=config, env=env)
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    live = Interpreter(str(python), {**env, **path}).ask(argv)
    seen = resolved(python, model, words, work / "server.log")
    row: dict[str, Any] = {"words": list(words), "static": static.outcome, "live": live.outcome}
    if isinstance(seen, str):
        return {**row, "server": seen}
    row["server"] = "ok"
    flat = flatten(seen)
    for tier, effective in (("static", static.effective), ("live", live.effective)):
        both = [name for name in effective if name in flat and not NOT_COMPARED.search(name)]
        wrong = {name: [effective[name], flat[name]] for name in both if not same(effective[name], flat[name])}
        row[f"{tier}_fields"], row[f"{tier}_wrong"] = len(both), wrong
    row["undecided"] = sorted(entry["field"] for entry in static.undecided)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp"))
    parser.add_argument("--out", type=Path, default=FIXTURE)
    parser.add_argument("--only", type=int, metavar="N", help="every N-th line")
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text()) if asked.out.exists() else []
    known = {tuple(row["words"]) for row in rows}
    for words in lines()[:: asked.only or 1]:
        if words in known:
            continue
        since = time.monotonic()
        rows.append(compare(asked.python, asked.model, words, asked.work))
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n")
        print(f"{time.monotonic() - since:4.0f} s {rows[-1]['server'][:60]} {' '.join(words)}", flush=True)
    started = [row for row in rows if row["server"] == "ok"]
    for tier in ("static", "live"):
        wrong = sum(len(row[f"{tier}_wrong"]) for row in started)
        print(f"{tier}: {sum(row[f'{tier}_fields'] for row in started)} fields of {len(started)} servers, {wrong} differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
