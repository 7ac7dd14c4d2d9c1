#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How often the gate's word is wrong and how long it takes, in virtual time, with the gate's own loop and judgement.

Run: .venv/bin/python benchmarks/gate/decisions.py [--runs 1000] [--distance 0.05]
For each kind of server, and for servers above and below the limit by the distance: false passes, false fails, no decision at
the cap of 180 s, mean window until the word. Beside it a run of fixed length that is right as often: once judged by its
interval as the gate does (pass, fail or neither), once by its bare figure (above the limit or not), which knows no doubt.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))
from _core.gate.load import ClosedLoop, PointLoad
from _core.gate.looks import Looks
from _core.gate.plan import GatePlan
from _core.gate.stream import Trace
from _core.gate.throughput import throughput
from _core.gate.verdict import FAIL, INCONCLUSIVE, PASS, Yardsticks, decided, judge_limits
from virtual import NS, Noise, VirtualLoop, VirtualServer, run_virtually, truth

CAP_S, WARM_UP_S, SLACK_S = 180.0, 30.0, 60.0
LENGTHS = [float(seconds) for seconds in range(12, 181, 6)]
KINDS = (
    Noise("quiet, 16 streams", request_spread=0.02),
    Noise("requests differ by 10 %, 4 streams", workers=4, request_spread=0.10),
    Noise("requests differ by 5 %, 1 stream", workers=1, request_spread=0.05),
    Noise("speed wanders 3 % over 4 s, 16 streams", wander=0.03, wander_s=4),
    Noise("speed wanders 3 % over 15 s, 16 streams", wander=0.03, wander_s=15),
    Noise("speed wanders 4 % over 8 s, 1 stream", workers=1, request_spread=0.02, wander=0.04, wander_s=8),
    Noise("cohorts for good, speed wanders 2 %", cohorts=8, crowding=0.2, wander=0.02, wander_s=4),
    Noise("cohorts that change, speed wanders 2 %", cohorts=8, crowding=0.12, stays=0.5, wander=0.02, wander_s=4),
)
BEYOND = (Noise("speed wanders 6 % over 8 s, 8 streams", workers=8, wander=0.06, wander_s=8),)


@dataclass(frozen=True)
class Decision:
    """One run: the word, and the window it took [s]."""

    word: str
    seconds: float


def decide(noise: Noise, seed: str, distance: float) -> Decision:
    """Gate one virtual server whose true rate is ``distance`` above (below, if negative) the limit."""
    plan = GatePlan.from_dict(
        {"points": [{"concurrency": noise.workers, "min_output_tokens_per_s": truth(noise, seed) / (1 + distance)}]}
    )
    against, looks = Yardsticks(plan), Looks()

    def enough(load: PointLoad, now_ns: int) -> bool:
        if now_ns - (load.window_start_ns or 0) < plan.min_seconds_per_point * NS or not looks.due(load.rounds, now_ns):
            return False
        return decided(judge_limits(plan.points[0], load, against), load, plan)

    load = loaded(noise, seed, enough)
    word = judge_limits(plan.points[0], load, against)[0].verdict
    return Decision(word, ((load.window_end_ns or 0) - (load.window_start_ns or 0)) / NS)


def loaded(noise: Noise, seed: str, enough: Callable[[PointLoad, int], bool]) -> PointLoad:
    """Put the gate's closed loop on a virtual server until ``enough(load, now_ns)`` or the cap."""

    async def main(loop: VirtualLoop) -> PointLoad:
        server = VirtualServer(noise, seed, CAP_S + WARM_UP_S + SLACK_S)
        worker_of: dict[asyncio.Task[None] | None, int] = {}

        async def send(number: int, warm_up: bool, trace: Trace) -> Trace:
            worker = worker_of.setdefault(asyncio.current_task(), len(worker_of))
            start = loop.time()
            done = server.done_s(worker, start)
            await asyncio.sleep(done - start)
            trace.done_ns = loop.time_ns()
            trace.chunks.append([trace.done_ns, noise.tokens])
            trace.output_tokens, trace.status = noise.tokens, "ok"
            return trace

        closed = ClosedLoop(send, noise.workers, clock_ns=loop.time_ns, max_seconds=CAP_S)
        return await closed.run(lambda load: enough(load, loop.time_ns()), lambda load: None)

    return run_virtually(main)


@dataclass(frozen=True)
class Fixed:
    """A run of fixed length: share of right words when judged by its interval, and by the bare figure."""

    seconds: float
    right_by_interval: float
    right_by_figure: float


def fixed_lengths(noise: Noise, runs: int, distance: float) -> list[Fixed]:
    """Judge the same servers after fixed windows."""
    words: dict[float, list[tuple[bool, bool]]] = {length: [] for length in LENGTHS}
    for run in range(runs):
        seed = f"fixed/{run}"
        rate, load = truth(noise, seed), loaded(noise, seed, lambda load, now: False)
        for length in LENGTHS:
            cut = _until(load, (load.window_start_ns or 0) + length * NS)
            seen = throughput(cut, 0.95)
            for side in (distance, -distance):
                limit = rate / (1 + side)
                clear = seen.ci is not None and (seen.ci[0] >= limit if side > 0 else seen.ci[1] < limit)
                words[length].append((clear, seen.value is not None and (seen.value >= limit) == (side > 0)))
    return [Fixed(length, fmean(a for a, b in said), fmean(b for a, b in said)) for length, said in words.items()]


def _until(load: PointLoad, end_ns: float) -> PointLoad:
    streams = [[trace for trace in stream if (trace.done_ns or 0) <= end_ns] for stream in load.streams]
    return PointLoad(load.concurrency, streams, window_start_ns=load.window_start_ns, window_end_ns=round(end_ns))


def least(fixed: Sequence[Fixed], share: Callable[[Fixed], float], needed: float) -> float | None:
    """Return the shortest length from which on the share is as high as needed; None beyond the cap."""
    enough = None
    for one in reversed(fixed):
        if share(one) < needed:
            break
        enough = one.seconds
    return enough


def pooled(lengths: Sequence[Sequence[Fixed]]) -> list[Fixed]:
    """Return per length: how often the interval is right over all kinds, and the bare figure on the kind that is hardest for it.

    Which kind a server is of is not known before: a fixed length has to do for each.
    """
    return [
        Fixed(same[0].seconds, fmean(one.right_by_interval for one in same), min(one.right_by_figure for one in same))
        for same in zip(*lengths, strict=True)
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--runs", type=int, default=1000, help="decisions per side and kind of server")
    options.add_argument("--distance", type=float, default=0.05, help="of the true rate from the limit")
    asked = options.parse_args()
    print(f"{asked.runs} decisions per side and kind, {asked.distance:.0%} from the limit")
    print(f"{'server':<42}{'false pass':>11}{'false fail':>11}{'no word':>9}{'window s':>10}")
    windows, right, wrong, lengths = [], [], [], []
    for noise in (*KINDS, *BEYOND):
        above = [decide(noise, f"above/{run}", asked.distance) for run in range(asked.runs)]
        below = [decide(noise, f"below/{run}", -asked.distance) for run in range(asked.runs)]
        false_pass, false_fail = fmean(one.word == PASS for one in below), fmean(one.word == FAIL for one in above)
        none, window = fmean(one.word == INCONCLUSIVE for one in above + below), fmean(one.seconds for one in above + below)
        beyond = "  not counted: beyond what is promised" if noise in BEYOND else ""
        print(f"{noise.name:<42}{false_pass:>11.2%}{false_fail:>11.2%}{none:>9.2%}{window:>10.1f}{beyond}", flush=True)
        if noise in KINDS:
            windows.append(window)
            wrong.append((false_pass + false_fail) / 2)
            right.append(1 - none - wrong[-1])
            lengths.append(fixed_lengths(noise, max(asked.runs // 2, 50), asked.distance))
    mean, fixed = fmean(windows), pooled(lengths)
    print(f"all counted: right in {fmean(right):.2%}, wrong in {fmean(wrong):.3%}, after {mean:.1f} s on average")
    ways = (
        ("right as often, judged by its interval", least(fixed, lambda one: one.right_by_interval, fmean(right))),
        (f"wrong in {max(wrong):.2%} at most, by its bare figure", least(fixed, lambda one: one.right_by_figure, 1 - max(wrong))),
    )
    for how, needs in ways:
        said = "more than 180 s" if needs is None else f"{needs:.0f} s: {needs / mean:.1f} times as long"
        print(f"a run of fixed length that is {how}: {said}")


if __name__ == "__main__":
    main()
