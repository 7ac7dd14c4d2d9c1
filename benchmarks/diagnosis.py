#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How often the diagnosis names the right cause first, in virtual time, on two scheduler models, with faults drawn at random.

Run: .venv/bin/python benchmarks/diagnosis.py [--runs 20] [--pairs 60] [--seed 1]
Prints for each cause how often it came first on each model and what was named instead, then pairs of causes (either one first,
both named), then servers without a fault, of which none may be accused. One run takes about a second of processor time.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from diagnosis_bed import FITTED, STAGES, Bed, Load, Server
from inferops_fake_engine.clock import Continuous, Pipeline

MODELS = {"cohorts": Pipeline, "continuous": Continuous}
Change = dict[str, Any]
SIGNS = {"GATE-POWER", "GATE-HEADROOM"}


def healthy(model: str, chance: random.Random) -> tuple[Server, Load]:
    """A server without a fault: its costs, depth and load differ from run to run, async depth 0 in half of them."""
    parameters = replace(
        FITTED,
        occupancy_ms=FITTED.occupancy_ms * chance.uniform(0.02, 0.12),
        bandwidth_share=chance.uniform(0.66, 0.85),
        hop_ms=chance.uniform(0.03, 0.2),
        prefill_ms_per_token=FITTED.prefill_ms_per_token * chance.uniform(0.5, 2.0),
    )
    load = Load(
        concurrencies=chance.choice([(1, 8, 16), (1, 16), (1, 4, 12)]),
        input_tokens=chance.choice([128, 256, 512]),
        output_tokens=chance.choice([64, 96, 128]),
        rounds=chance.choice([3, 4]),
    )
    return Server(model=MODELS[model], parameters=parameters, depth=chance.choice([0, 0, 4, 8])), load


def costs(server: Server, **factors: float) -> Change:
    return {"parameters": replace(server.parameters, **{n: getattr(server.parameters, n) * f for n, f in factors.items()})}


def tokens_per_s(load: Load) -> float:
    """What a healthy server gives at least at the largest concurrency."""
    return 11.0 * max(load.concurrencies)


def launch(server: Server, load: Load, chance: random.Random) -> Change:
    return {"graphs": False, **costs(server, launch_ms_per_layer=chance.uniform(0.8, 2.5))}


def eager(server: Server, load: Load, chance: random.Random) -> Change:
    return {"graph_max_batch": 1, "depth": 0}


def fill(server: Server, load: Load, chance: random.Random) -> Change:
    return {"cohorted": True, "max_micro_batch": chance.choice([max(load.concurrencies), 64, 256])}


def slots(server: Server, load: Load, chance: random.Random) -> Change:
    return {"max_micro_batch": 1, "depth": 0}


def queue(server: Server, load: Load, chance: random.Random) -> Change:
    return {"max_running": chance.randint(2, max(load.concurrencies) // 2)}


def kv(server: Server, load: Load, chance: random.Random) -> Change:
    # Not even the prompts fit all at once: the clock retracts only what shares a micro-batch, else nothing would be lost.
    return {"kv_share": chance.uniform(0.35, 0.8) * load.input_tokens / (load.input_tokens + load.output_tokens)}


def slow_stage(server: Server, load: Load, chance: random.Random) -> Change:
    return {"slow_stages": {chance.randrange(STAGES): chance.uniform(2.2, 5.0)}}


def slow_hop(server: Server, load: Load, chance: random.Random) -> Change:
    return {"slow_hops": {chance.randrange(STAGES - 1): chance.uniform(20.0, 80.0)}}


def p2p(server: Server, load: Load, chance: random.Random) -> Change:
    extra = chance.uniform(3.0, 10.0)
    return {"slow_hops": dict.fromkeys(range(STAGES - 1), extra), "p2p_refused": True}


def compiling(server: Server, load: Load, chance: random.Random) -> Change:
    return {"compile_count": chance.randint(2, 4), "compile_ms": chance.uniform(1500.0, 8000.0)}


def throttle(server: Server, load: Load, chance: random.Random) -> Change:
    reasons = chance.sample(["hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"], chance.randint(1, 2))
    cards = chance.choice([range(STAGES), [chance.randrange(STAGES)], chance.sample(range(STAGES), 3)])
    return {"throttle": {"factor": chance.uniform(1.4, 3.0), "reasons": reasons, "gpus": list(cards)}}


def prefill(server: Server, load: Load, chance: random.Random) -> Change:
    per_prompt = chance.uniform(150.0, 500.0)  # ms per stage
    return {"parameters": replace(server.parameters, prefill_ms_per_token=per_prompt / load.input_tokens)}


def scheduler(server: Server, load: Load, chance: random.Random) -> Change:
    return {"parameters": replace(server.parameters, occupancy_ms=chance.uniform(6.0, 16.0))}


def backend(server: Server, load: Load, chance: random.Random) -> Change:
    return costs(server, kernel_factor=chance.uniform(2.2, 5.0))


def client(server: Server, load: Load, chance: random.Random) -> Change:
    return {"client_ms": 1000.0 / (tokens_per_s(load) * chance.uniform(0.25, 0.7))}


def link(server: Server, load: Load, chance: random.Random) -> Change:
    return {"link_ms": 1000.0 / (tokens_per_s(load) * chance.uniform(0.25, 0.7))}


def delay(server: Server, load: Load, chance: random.Random) -> Change:
    return {"delay_ms": chance.uniform(0.4, 2.0) * load.output_tokens * 30.0}


def roofline(server: Server, load: Load, chance: random.Random) -> Change:
    near = {"bandwidth_share": chance.uniform(0.93, 0.99), "hop_ms": 0.02, "prefill_ms_per_token": 0.005}
    return {"parameters": replace(server.parameters, **near), "limit_of_bound": 0.999}


CAUSES: dict[str, tuple[Callable[[Server, Load, random.Random], Change], frozenset[str]]] = {
    "launch": (launch, frozenset({"GATE-LAUNCH"})),
    "eager above the captured size": (eager, frozenset({"GATE-EAGER"})),
    "fill: crowded slots": (fill, frozenset({"GATE-FILL"})),
    "fewer slots than requests": (slots, frozenset({"GATE-QUEUE"})),
    "queue": (queue, frozenset({"GATE-QUEUE"})),
    "KV pool": (kv, frozenset({"GATE-KV"})),
    "slow stage": (slow_stage, frozenset({"GATE-SLOW-STAGE"})),
    "slow hop": (slow_hop, frozenset({"GATE-SLOW-HOP"})),
    "P2P refused": (p2p, frozenset({"GATE-P2P"})),
    "compilation": (compiling, frozenset({"GATE-COMPILE"})),
    "throttled": (throttle, frozenset({"GATE-THROTTLE"})),
    "prefill": (prefill, frozenset({"GATE-PREFILL"})),
    "scheduler": (scheduler, frozenset({"GATE-SCHEDULER"})),
    "back end": (backend, frozenset({"GATE-BACKEND"})),
    "client": (client, frozenset({"GATE-CLIENT"})),
    "link": (link, frozenset({"GATE-NETWORK"})),
    "delay": (delay, frozenset({"GATE-NETWORK"})),
    "roofline": (roofline, frozenset({"GATE-ROOFLINE"})),
}


def named(model: str, causes: tuple[str, ...], seed: str) -> list[str]:
    """Run one server with these causes, drawn from the seed; return the codes in the order in which they are said."""
    chance = random.Random(f"{seed}/{model}/{'+'.join(causes)}")
    server, load = healthy(model, chance)
    if "fewer slots than requests" in causes:
        load = replace(load, concurrencies=(1, 16))
    for cause in causes:
        server = replace(server, **CAUSES[cause][0](server, load, chance))
    return [item["code"] for item in Bed(server, load).run()["diagnosis"]]


def pairs() -> list[tuple[str, str]]:
    """Causes that can be switched on together: two of the same fault, or one that leaves no room for the other, cannot."""
    apart = {
        frozenset(pair)
        for pair in (
            ("launch", "eager above the captured size"),
            ("slow hop", "P2P refused"),
            ("fewer slots than requests", "queue"),
            ("fewer slots than requests", "fill: crowded slots"),
            ("fewer slots than requests", "eager above the captured size"),
            ("fewer slots than requests", "KV pool"),
            ("queue", "KV pool"),
            ("queue", "eager above the captured size"),
            ("link", "delay"),
        )
    }
    useful = [cause for cause in CAUSES if cause != "roofline"]  # Near the roofline nothing else takes time.
    return [pair for pair in itertools.combinations(useful, 2) if frozenset(pair) not in apart]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="runs per cause and model")
    parser.add_argument("--pairs", type=int, default=60, help="runs with two causes, per model")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    good = True
    for model in MODELS:
        print(f"\n{model}: one cause at a time, {options.runs} runs each", flush=True)
        right = total = 0
        for cause, (_change, codes) in CAUSES.items():
            firsts = [(named(model, (cause,), f"{options.seed}/{run}") or ["nothing"])[0] for run in range(options.runs)]
            hits = sum(first in codes for first in firsts)
            right, total = right + hits, total + len(firsts)
            others = collections.Counter(first for first in firsts if first not in codes)
            shown = ", ".join(f"{code} {count}" for code, count in others.most_common())
            print(f"  {cause:32} {hits:4} of {len(firsts)} {'first: ' + '/'.join(sorted(codes)):28} {shown}", flush=True)
        print(f"  {'all':32} {right:4} of {total}: {100 * right / total:.1f} %")
        good &= right >= 0.95 * total
        chance, choices = random.Random(f"{options.seed}/pairs/{model}"), pairs()
        either = both = 0
        misses: collections.Counter[str] = collections.Counter()
        for run in range(options.pairs):
            pair = chance.choice(choices)
            found = named(model, pair, f"{options.seed}/{run}")
            wanted = [CAUSES[cause][1] for cause in pair]
            hit = bool(found) and any(found[0] in codes for codes in wanted)
            either += hit
            both += all(set(found) & codes for codes in wanted)
            if not hit:
                misses[f"{' + '.join(pair)} -> {found[0] if found else 'nothing'}"] += 1
        print(f"  pairs: one of both first {either} of {options.pairs}, both named {both}")
        for text, count in misses.most_common():
            print(f"    {count} × {text}")
        good &= either >= 0.95 * options.pairs
        accused = [found for run in range(2 * options.runs) if (found := named(model, (), f"{options.seed}/{run}"))]
        print(f"  without a fault: {len(accused)} of {2 * options.runs} accused {accused or ''}", flush=True)
        good &= not accused
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
