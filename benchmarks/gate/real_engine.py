#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate against the real SGLang on a CPU: is everything read rightly, is nothing claimed that the evidence does not carry?

Run: .venv/bin/python benchmarks/gate/real_engine.py [--rounds 4] [--cases one stage…] [--keep FOLDER]
A tiny random model of Kimi's shape is served on loopback by one stage, then by two with async depth 0: a healthy pipeline. At
each the gate runs with every endpoint, with prompts of a file, with arrivals at a rate; then in turn with
sglang.bench_serving of the same installation, so that what the machine does beside meets both alike. The environment (3 GB)
is made on the first run in the folder that INFEROPS_PEERS names. Speed on a CPU says nothing about a GPU; the plumbing is real.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "fakes" / "record"))
from clients import HERE, PEERS, set_up
from record_real_engine import Recorder, free_port
from yardstick import mean_and_reach

TOOL = HERE.parents[1] / "tools" / "inferops"
INPUT_TOKENS, OUTPUT_TOKENS = 64, 32
BESIDE = (1, 4)
REQUESTS_PER_STREAM = 12
# A machine that has no time for /metrics tells little of what the engine thinks.
ENOUGH_READINGS = 20
# Random weights answer nothing rightly, say a word or two again and again, and call no tools.
PLAN = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "min_seconds_per_point": 5,
    "max_seconds_per_point": 60,
    "sanity": {"prompt": "What is 17 + 25?", "expect": None},
    "correctness": {"tool_calls": False, "min_distinct_characters": 2},
}
LOW = {"min_output_tokens_per_s": 1}
POINTS = [{"concurrency": 1, **LOW}, {"concurrency": 4, **LOW}]
TOPICS = ("river", "stone", "window", "garden", "table", "letter")


@dataclass(frozen=True)
class Case:
    """One start of the engine."""

    name: str
    argv: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


CASES = (
    Case("one stage"),
    Case(
        "two stages, depth 0",
        ("--pp-size", "2", "--pp-async-batch-depth", "0", "--enable-cache-report"),
        (("SGLANG_CPU_OMP_THREADS_BIND", "0|1"),),
    ),
)


def plans(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, plan) of every way to put on load."""
    for endpoint in ("completions", "chat", "generate"):
        yield endpoint, {**PLAN, "endpoint": endpoint, "points": POINTS}
    file = folder / "prompts.txt"
    lines = (f"the {TOPICS[one % 6]} and the {TOPICS[one // 6 % 6]} by night, seen {one} times over" for one in range(400))
    file.write_text("\n".join(lines) + "\n")
    yield "prompts of a file", {**PLAN, "prompts": {"file": str(file)}, "points": POINTS[1:]}
    yield "arrivals", {**PLAN, "points": [{"rate": 0.5, "min_goodput_ratio": 0.5}]}


def gate(url: str, plan: Mapping[str, Any], folder: Path, model: Path) -> dict[str, Any]:
    """Run the gate as a user does and return its result, its exit status in it."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    words = [str(TOOL), "gate", "--base-url", url, "--plan", str(folder / "plan.json"), "--out", str(folder / "out")]
    environment = {**os.environ, "INFEROPS_PYTHON": sys.executable}
    with (folder / "log").open("w") as log:
        status = subprocess.run(
            [*words, "--model-config", str(model / "config.json")], stdout=log, stderr=log, env=environment, check=False
        ).returncode
    if status == 2:
        sys.exit(f"the gate could not run: {(folder / 'log').read_text()}")
    return {**json.loads((folder / "out" / "result.json").read_text()), "status": status}


def bench_serving(url: str, streams: int, recorder: Recorder, folder: Path) -> dict[str, Any]:
    """Run sglang.bench_serving of the same installation and return what it reports."""
    folder.mkdir(parents=True)
    words = [
        *("--backend", "sglang-oai", "--base-url", url, "--model", str(recorder.work / "model"), "--served-model-name", "tiny"),
        *("--dataset-name", "random-ids", "--random-range-ratio", "1.0", "--disable-tqdm"),
        *("--random-input-len", str(INPUT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS)),
        *("--num-prompts", str(streams * REQUESTS_PER_STREAM), "--max-concurrency", str(streams)),
        *("--output-file", str(folder / "said.jsonl")),
    ]
    recorder.run("-m", "sglang.benchmark.serving", *words)
    said: dict[str, Any] = json.loads((folder / "said.jsonl").read_text().splitlines()[-1])
    return said


def checks(name: str, result: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield (what must be true of a gate of a healthy engine, whether it is)."""
    yield f"verdict {result['verdict']} {result['reasons']}", (result["verdict"], result["status"]) == ("pass", 0)
    causes = [f"{item['code']} {item['evidence']}" for item in result["diagnosis"]]
    yield f"causes claimed: {causes or 'none'}", not causes
    yield f"version {result['engine']['version']}, simulated {result['engine']['simulated']}", not result["engine"]["simulated"]
    yield f"cards {result['gpus']}", result["gpus"] == []
    for point in result["points"]:
        at = f"at {point['concurrency']}: " if point["rate"] is None else f"at {point['rate']:g}/s: "
        given, taken = point["output_tokens"]["mean"], point["input_tokens"]["mean"]
        yield f"{at}{given} tokens given", given == OUTPUT_TOKENS
        yield f"{at}{taken} tokens taken", taken == INPUT_TOKENS or name == "prompts of a file"
        yield f"{at}cached share {point['cached_tokens_ratio']}", point["cached_tokens_ratio"] is not None
        passes = point["engine"]["graph_passes"]
        yield f"{at}passes {passes}", bool(passes) and passes["decode"]["graph"] == 0 and passes["decode"]["eager"] > 0
        inside, outside = point["engine"]["e2e_ms"], point["client"]["e2e_mean_ms"]
        few = point["engine"]["readings"] < ENOUGH_READINGS or not inside
        yield f"{at}E2E {inside} ms by the engine, {outside} ms by the client", few or abs(inside / outside - 1) < 0.25


def row(case: str, name: str, point: Mapping[str, Any]) -> str:
    rate, interval, share = point["output_tokens_per_s"], point["ci"] or (0, 0), point["cached_tokens_ratio"] or 0
    load = f"{point['concurrency']:.3g}" if point["rate"] is None else f"{point['rate']:g}/s"
    return (
        f"{case:<26}{name:<19}{load:>6}{rate or 0:>9.1f}{f'{interval[0]:.0f} … {interval[1]:.0f}':>14}"
        f"{point['ttft_ms']['p50'] or 0:>9.0f}{point['tpot_ms']['p50'] or 0:>9.1f}{share:>9.2%}"
    )


def beside(url: str, rounds: int, recorder: Recorder, folder: Path) -> Iterator[str]:
    """Run both clients in turn and yield one line per number of streams."""
    for streams in BESIDE:
        ours, theirs, inside = [], [], 0
        for number in range(rounds):
            plan = {**PLAN, "points": [{"concurrency": streams}], "default_limits": "none"}
            point = gate(url, plan, folder / f"beside-{streams}-{number}", recorder.work / "model")["points"][0]
            said = bench_serving(url, streams, recorder, folder / f"bench-{streams}-{number}")["output_throughput"]
            ours.append(point["output_tokens_per_s"])
            theirs.append(said)
            low, high = point["ci"] or (0.0, 0.0)
            inside += low <= said <= high
        apart, reach = mean_and_reach([a / b - 1 for a, b in zip(ours, theirs, strict=True)])
        spread = "" if reach is None else f" ±{reach:.1%}"
        yield (
            f"  {streams} in flight: ours {mean_and_reach(ours)[0]:.1f} tok/s, sglang.bench_serving "
            f"{mean_and_reach(theirs)[0]:.1f}; round by round {apart:+.1%}{spread}; {inside} of {rounds} of its figures lie in "
            "our interval"
        )


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=4, help="of both clients in turn; 0: none")
    options.add_argument("--cases", nargs="+", default=[case.name for case in CASES], help="starts of the engine, by name")
    options.add_argument("--plans", nargs="+", help="ways to put on load, by name; all unless given")
    options.add_argument("--engine", type=Path, help="python of an environment that has SGLang already")
    options.add_argument("--python", default="python3.11", help="that makes the environment")
    options.add_argument("--keep", type=Path, help="folder for result folders and logs, kept")
    asked = options.parse_args()
    if asked.engine is None:
        set_up("engine", asked.python)
    work = asked.keep or Path(tempfile.mkdtemp(prefix="real-engine-"))
    recorder = Recorder(asked.engine or PEERS / "engine" / "bin" / "python", work)
    work.mkdir(parents=True, exist_ok=True)
    model = recorder.write_model()
    missed: list[str] = []
    print(f"{'engine':<26}{'load':<19}{'at':>6}{'tok/s':>9}{'interval':>14}{'TTFT ms':>9}{'TPOT ms':>9}{'cached':>9}")
    for case in (case for case in CASES if case.name in asked.cases):
        folder = work / case.name.replace(" ", "-")
        folder.mkdir()
        with recorder.engine(free_port(), [], *case.argv, **dict(case.environment)) as url:
            for name, plan in plans(folder):
                if asked.plans is not None and name not in asked.plans:
                    continue
                result = gate(url, plan, folder / name.replace(" ", "-"), model)
                print("\n".join(row(case.name, name, point) for point in result["points"]), flush=True)
                missed += [f"{case.name}, {name}: {text}" for text, good in checks(name, result) if not good]
            if asked.rounds:
                print("\n".join(beside(url, asked.rounds, recorder, folder)), flush=True)
    print("\n".join(f"MISSED {line}" for line in missed) or "all as it must be")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
