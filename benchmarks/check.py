#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a check costs beside SGLang's own --help and beside executing the release's argument code: time, processor, memory.

Run: .venv/bin/python benchmarks/check.py [--releases 0.5.12 0.5.23] [--rounds 5] [--markdown]
Every way is a process of its own and takes its turn in each round; medians. The same command line is asked of the check (cold,
and kept from before) and of the release; how far the two answers agree is printed too, since quick and wrong is no gain.
SGLang's own code runs in the environment of tests/oracle (python tests/oracle/environment.py makes it, 3 GB): where that is not
there, it is said, and our own figures stand alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import environment
from cards import HARDWARE
from executor import MODELS
from score import same

REPOSITORY = Path(__file__).resolve().parents[1]
ORACLE = REPOSITORY / "tests" / "oracle"
HOST, MODEL = "8xRTXPRO6000", "kimi_k25"
ARGV = ("--model-path", f"@models/{MODEL}", "--trust-remote-code", "--pp-size", "8", "--disable-cuda-graph")
COLD, KEPT, HELP, EXECUTED = "check, cold", "check, kept answer", "SGLang's --help", "SGLang's argument code"
# The launcher as published, on the host that the oracle pretends to be.
LAUNCHER = """
import runpy, sys, tempfile
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import fake_gpu, stand_ins
from cards import HARDWARE
fake_gpu.pretend(HARDWARE[sys.argv[3]], Path(tempfile.mkdtemp()))
stand_ins.install(Path(sys.argv[2]))
sys.argv = ["sglang.launch_server", "--help"]
runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=True)
"""

# A process of its own and small: a program inherits the peak of the process that started it.
METER = """
import json, os, sys, time
began = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
wall_s = time.monotonic() - began
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], file)
"""


@dataclass(frozen=True)
class Cost:
    """Of one process with all its children: seconds by the clock, seconds of processor time, largest resident size [MiB]."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Way:
    """One way to an answer; ``answer`` reads what it said, None where it says nothing comparable."""

    name: str
    command: Sequence[object]
    environment: Mapping[str, str]
    ends_with: tuple[int, ...]
    answer: Callable[[str], dict[str, Any]] | None = None


def measured(way: Way, folder: Path) -> tuple[Cost, str]:
    """Run it once to its end; return (what it took, its standard output)."""
    with (folder / "stdout").open("wb") as file, (folder / "stderr").open("wb") as errors:
        meter = [sys.executable, "-I", "-S", "-c", METER, folder / "used.json", *way.command]
        subprocess.run(
            [str(word) for word in meter], stdout=file, stderr=errors, env={**os.environ, **way.environment}, check=True
        )
    status, *figures = json.loads((folder / "used.json").read_text())
    if status not in way.ends_with:
        raise RuntimeError(f"{way.name} ended with {status}:\n{(folder / 'stderr').read_text()[-2000:]}")
    return Cost(*figures), (folder / "stdout").read_text()


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure by itself."""
    return Cost(*(median(getattr(cost, name) for cost in costs) for name in ("wall_s", "cpu_s", "peak_mib")))


def ratio(cost: Cost, ours: Cost) -> Cost:
    """Return how many times as much as ours."""
    return Cost(cost.wall_s / ours.wall_s, cost.cpu_s / ours.cpu_s, cost.peak_mib / ours.peak_mib)


def agreement(ours: Mapping[str, Any], executed: Mapping[str, Any]) -> str:
    """Say how far the check and the release agree on what becomes of the command line."""
    if ours["outcome"] != executed["outcome"]:
        return f"NOT THE SAME: the check says {ours['outcome']}, the release {executed['outcome']}"
    both = sorted(ours["changed"].keys() & executed["changed"].keys())
    other = [name for name in both if not same(executed["changed"][name][1], ours["changed"][name]["to"])]
    all_of_them = len(executed["changed"])
    said = f"{ours['outcome']} by both; {len(both) - len(other)} of the release's {all_of_them} changed fields are the same"
    return f"{said}; NOT THE SAME: {', '.join(other)}" if other else said


def ways(version: str, folder: Path) -> list[Way]:
    """Return what can be run here for a release; say what cannot."""
    facts, cases, out = folder / "facts.json", folder / "cases.json", folder / "executed.json"
    facts.write_text(json.dumps(HARDWARE[HOST].facts()))
    cases.write_text(json.dumps([{"id": "story", "argv": list(ARGV), "hardware": HOST, "model_config": MODEL}]))
    told = ["--source", environment.wheels.fetch(version), "--facts", facts, "--model", MODELS / MODEL / "config.json"]
    asked = ["--format", "json", "--", *(word.replace("@models", str(MODELS)) for word in ARGV)]
    check = [REPOSITORY / "tools" / "inferops", "check", *told]
    ours = {"INFEROPS_PYTHON": sys.executable, "INFEROPS_CACHE": str(folder / "cache")}

    def said(text: str) -> dict[str, Any]:
        return dict(json.loads(text.replace(str(MODELS), "@models")))

    found = [
        Way(COLD, [*check, "--no-cache", *asked], ours, (0, 1), said),
        Way(KEPT, [*check, *asked], ours, (0, 1), said),
    ]
    if not (environment.cache("oracle", "venv") / ".made-from").exists():
        print("not there: the environment that executes SGLang's code (python tests/oracle/environment.py makes it)")
        return found
    place = environment.ensure(version)
    theirs = {"PYTHONPATH": str(place.overlay or ""), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    theirs |= {name: "" for name in os.environ if name.startswith(("SGLANG_", "SGL_"))}
    executor = [place.python, ORACLE / "execute.py", "--source", place.source, "--models", MODELS, "--out", out]
    return [
        *found,
        Way(HELP, [place.python, "-c", LAUNCHER, ORACLE, place.source, HOST], theirs, (0,)),
        Way(
            EXECUTED,
            [*executor, "--hardware", HOST, "--cases", cases],
            theirs,
            (0,),
            lambda text: dict(json.loads(out.read_text())[0]),
        ),
    ]


def compare(version: str, rounds: int) -> tuple[dict[str, Cost], str | None]:
    """Return the median cost of each way for one release, and how far the answers agree."""
    costs: dict[str, list[Cost]] = {}
    answers: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = ways(version, folder)
        # Once before: the kept answer has to be there, and whoever is first would pay for reading the files from disk.
        for number in range(rounds + 1):
            for way in found[number % len(found) :] + found[: number % len(found)]:
                cost, said = measured(way, folder)
                if number:
                    costs.setdefault(way.name, []).append(cost)
                if way.answer is not None:
                    answers[way.name] = way.answer(said)
    if answers[KEPT] != answers[COLD]:
        raise RuntimeError("the kept answer is not the one that was worked out")
    told = agreement(answers[COLD], answers[EXECUTED]) if EXECUTED in answers else None
    return {way.name: middle(costs[way.name]) for way in found}, told


def rows(version: str, costs: Mapping[str, Cost]) -> list[list[str]]:
    """Return one row per way, with how many times a cold check it takes."""
    lines = []
    for name, cost in costs.items():
        times = ratio(cost, costs[COLD])
        figures = (f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", f"{cost.peak_mib:.0f}")
        lines.append([version, name, *figures, f"{times.wall_s:.2g}", f"{times.cpu_s:.2g}", f"{times.peak_mib:.2g}"])
    return lines


HEADS = ("release", "way", "wall s", "CPU s", "peak MiB", "× wall", "× CPU", "× memory")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--releases", nargs="+", default=["0.5.12", "0.5.23"])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--markdown", action="store_true", help="as the table of docs/how-the-check-works.md")
    asked = options.parse_args()
    table, agreed = [], []
    for version in asked.releases:
        costs, told = compare(version, asked.rounds)
        table += rows(version, costs)
        agreed += [f"{version}: {told}"] if told else []
    if asked.markdown:
        print("\n".join("| " + " | ".join(line) + " |" for line in [HEADS, ["---"] * len(HEADS), *table]))
    else:
        print("\n".join(f"{line[0]:<9}{line[1]:<24}" + "".join(f"{word:>10}" for word in line[2:]) for line in [HEADS, *table]))
    print("\n".join(agreed))
    return 1 if any("NOT THE SAME" in line for line in agreed) else 0


if __name__ == "__main__":
    sys.exit(main())
