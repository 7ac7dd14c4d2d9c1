#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far the gate's client reaches: streams and tokens/s of one process on one core or of several, against the server's log.

Run: .venv/bin/python benchmarks/gate/reach.py [--streams 512] [--tokens-per-s 15000 …] [--seconds 10] [--processes 1 2]
The known server has one core, one client process the other; several share every core with it. Per load: tokens/s, TTFT and ITL
as the client saw them, their error, the processor time per second of the client's busiest process, of the one that plans where
there are several, and of the server, and how late the server was at most. A server that is busy or late says that it, not the
client, was the end. What the machine does beside takes from both.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))
from _core.gate.client import Client
from _core.gate.load import PointLoad
from _core.gate.plan import GatePlan
from _core.gate.prompts import PromptMaker
from _core.gate.stream import Trace
from _core.gate.wire import Wire
from _core.gate.worker import Job
from _core.gate.workers import LoadWorkers
from clients import Setting
from peers import Server
from yardstick import Truth, error, truth

INPUT_TOKENS = 64
BUSY = 0.95


@dataclass(frozen=True)
class Reached:
    """Shares of a core are processor time over the time of the load; the client's figures by its own clock."""

    tokens_per_s: float
    ttft_p50_ms: float
    itl_p50_ms: float
    client_share: float
    planner_share: float | None
    server_share: float
    server_late_ms: float
    true: Truth

    @property
    def throughput_error(self) -> float | None:
        return error(self.tokens_per_s, self.true.tokens_per_s)


def seen(traces: Sequence[Trace], streams: int) -> tuple[float, float, float]:
    """Return (tokens/s, median TTFT [ms], median ITL [ms]) of whole answers, as truth() takes them from the server's log.

    The rate is that of the answers themselves, as streams that are never idle would have it.
    """
    spans = [(trace.chunks.times[-1] - (trace.sent_ns or 0)) / 1e9 for trace in traces]
    tokens = fmean(trace.received_tokens for trace in traces)
    first = [(trace.chunks.times[0] - (trace.sent_ns or 0)) / 1e6 for trace in traces]
    gaps = [(after - before) / 1e6 for trace in traces for before, after in itertools.pairwise(trace.chunks.times)]
    return streams * tokens / fmean(spans), median(first), median(gaps)


async def load(url: str, setting: Setting) -> list[Trace]:
    body = {"model": "known", "stream": True, "max_tokens": setting.tokens, "ignore_eos": True, "prompt": [1] * INPUT_TOKENS}
    body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    async with Client(url) as client:
        return await asyncio.gather(
            *(client.generate("/v1/completions", body, stall_s=60, total_s=600) for dummy in range(setting.streams))
        )


async def split(url: str, setting: Setting, processes: int) -> tuple[list[Trace], float, float]:
    """Put the same load on by worker processes; return the traces, the seconds, and how busy the busiest process was."""
    plan = GatePlan.from_dict({"points": [{"concurrency": 1}], "input_tokens": INPUT_TOKENS, "output_tokens": setting.tokens})
    wire = Wire(PromptMaker(seed=7, nonce="", input_tokens=INPUT_TOKENS), "known", plan)
    load = PointLoad(setting.streams, [[]])
    job = Job(url, None, 0, wire, 0, setting.tokens, 60, 600)
    workers = LoadWorkers(processes, job, load, clock_ns=time.monotonic_ns)
    try:
        await workers.start()
        began = time.monotonic()
        traces = [Trace(planned_ns=time.monotonic_ns()) for dummy in range(setting.streams)]
        await asyncio.gather(*(workers.send(number, False, trace) for number, trace in enumerate(traces)))
        elapsed = time.monotonic() - began
    finally:
        await workers.close()
    return traces, elapsed, max(workers.busy(elapsed).values())


def reach(server: Server, streams: int, tokens_per_s: float, seconds: float, processes: int = 1) -> Reached:
    """Put one load on the server and compare."""
    itl_s = streams / tokens_per_s
    # The two stalls of each answer (4 more gaps each) and the first token are part of the time.
    tokens = max(round((seconds - 0.2) / itl_s) - 8, 16)
    setting = Setting(streams, itl_s, tokens, 1)
    server.set_pace(setting)
    wall, used = time.monotonic(), time.process_time()
    planner = None
    if processes == 1:
        traces, wall_s = asyncio.run(load(server.url, setting)), time.monotonic() - wall
        busiest = (time.process_time() - used) / wall_s
    else:
        traces, wall_s, busiest = asyncio.run(split(server.url, setting, processes))
        planner = (time.process_time() - used) / wall_s
    failed = [trace for trace in traces if trace.status != "ok"]
    if failed:
        raise RuntimeError(f"{len(failed)} of {streams} requests failed: {failed[0].error}")
    log = server.log()
    figures = seen(traces, streams)
    true = truth(log, streams=streams, tokens=tokens)
    return Reached(*figures, busiest, planner, log["cpu_s"] / wall_s, log["late_s"] * 1000, true)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--streams", type=int, default=512)
    options.add_argument("--tokens-per-s", type=float, nargs="+", default=[5_000, 10_000, 15_000, 18_000, 22_000])
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--processes", type=int, nargs="+", default=[1], help="of the client, each with every load")
    options.add_argument("--cores", type=int, nargs=2, default=[0, 1], help="of the server, of the client")
    asked = options.parse_args()
    server = Server(asked.cores[0])
    print(f"{asked.streams} streams\n{'asked':>8}{'procs':>6}{'sent':>8}{'seen':>8}{'error':>9}{'TTFT':>9}{'ITL':>9}", end="")
    print(f"{'client':>9}{'planner':>9}{'server':>9}{'late ms':>9}")
    met = False
    try:
        for wanted, processes in itertools.product(asked.tokens_per_s, asked.processes):
            os.sched_setaffinity(0, {asked.cores[1]} if processes == 1 else set(asked.cores))
            one = reach(server, asked.streams, wanted, asked.seconds, processes)
            rate, ttft, itl = (
                error(said, true)
                for said, true in (
                    (one.tokens_per_s, one.true.tokens_per_s),
                    (one.ttft_p50_ms, one.true.ttft_p50_ms),
                    (one.itl_p50_ms, one.true.itl_p50_ms),
                )
            )
            print(
                f"{wanted:>8.0f}{processes:>6}{one.true.tokens_per_s:>8.0f}{one.tokens_per_s:>8.0f}{rate:>+9.2%}{ttft:>+9.2%}{itl:>+9.2%}",
                end="",
            )
            planner = "" if one.planner_share is None else f"{one.planner_share:.0%}"
            print(f"{one.client_share:>9.0%}{planner:>9}{one.server_share:>9.0%}{one.server_late_ms:>9.0f}", flush=True)
            met = met or (one.true.tokens_per_s >= 15_000 and abs(one.throughput_error or 0.0) < 0.01)
    finally:
        server.close()
    print("reached: 15,000 tokens/s with less than 1 % error" if met else "NOT reached: 15,000 tokens/s with less than 1 % error")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
