#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate beside sglang.bench_serving, aiperf, guidellm and genai-bench, against one server whose rate is known.

Run: .venv/bin/python benchmarks/gate/peers.py [--rounds 4] [--streams 1 8 16 64 256] [--clients …] [--out FILE.jsonl]
The server has one core, the clients the other. In each round every client takes each setting in turn, so that what the machine
does beside meets all alike. Printed per setting and client: error of throughput, TTFT and ITL against the server's own log (a
figure is the client's own, see clients.py), processor time per 1,000 tokens from its first request until it has ended, report
included, and time and processor time from its start until its first request. Then, per column, ours against the best peer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clients import CLIENTS, HERE, OURS, Client, Place, Setting, set_up, write_tokenizer
from yardstick import Truth, error, mean_and_reach, paired, truth

SETTINGS = (
    Setting(1, 0.010, 128, 6),
    Setting(8, 0.010, 128, 5),
    Setting(16, 0.015, 128, 4),
    Setting(64, 0.020, 128, 4),
    Setting(256, 0.040, 64, 4),
)
LONGEST_S = 240.0
CPU_SHARE = 0.5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ACCURACY = ("throughput", "ttft", "itl", "itl_p99")
HEADS = {
    "throughput": "throughput",
    "ttft": "TTFT p50",
    "itl": "ITL p50",
    "itl_p99": "ITL p99",
    "cpu_s": "CPU s/1k tok",
    "startup_s": "start s",
    "startup_cpu_s": "start CPU s",
}


@dataclass(frozen=True)
class Run:
    """One run of one client. Errors are relative; the rest in seconds, ``cpu_s`` per 1,000 tokens."""

    client: str
    streams: int
    round: int
    throughput: float | None
    ttft: float | None
    itl: float | None
    itl_p99: float | None
    cpu_s: float
    startup_s: float
    startup_cpu_s: float
    tokens: int
    server_cpu_ratio: float
    true: Truth


class Server:
    """The known server in a process of its own."""

    def __init__(self, core: int) -> None:
        command = [sys.executable, str(HERE / "known_server.py")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        os.sched_setaffinity(self._process.pid, {core})
        self._out = self._process.stdout
        assert self._out is not None
        self.url = f"http://127.0.0.1:{int(self._out.readline())}"
        os.set_blocking(self._out.fileno(), False)

    def set_pace(self, setting: Setting) -> None:
        body = json.dumps({"ttft_s": setting.ttft_s, "itl_s": setting.itl_s}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/pace", data=body, method="PUT"), timeout=30).read()
        self.asked()

    def asked(self) -> bool:
        """Tell whether the first generation request has come since the last time."""
        assert self._out is not None
        return bool(self._out.read())

    def log(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/log", timeout=60) as answer:
            told: dict[str, Any] = json.load(answer)
        return told

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def used_by_session(session: int) -> float:
    """Return the processor time of all processes of a session but its leader, and of those they reaped [s]."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            own = 0 if int(stat.parent.name) == session else int(fields[11]) + int(fields[12])
            ticks += own + int(fields[13]) + int(fields[14])
    return ticks / TICKS_PER_S


def run_client(client: Client, setting: Setting, server: Server, place: Place, core: int) -> tuple[dict[str, Any], float, float]:
    """Run one client to its end; return (what launch.py measured, seconds and processor time until its first request)."""
    used = place.folder / "used.json"
    environment = {**os.environ, **client.environment, "HOME": str(place.folder), "MPLBACKEND": "Agg", "COLUMNS": "100"}
    command = [sys.executable, str(HERE / "launch.py"), str(core), str(used), "--", *client.command(setting, place)]
    server.set_pace(setting)
    began = time.monotonic()
    with (place.folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        startup_s = startup_cpu_s = None
        try:
            while process.poll() is None:
                if startup_s is None and server.asked():
                    startup_s, startup_cpu_s = time.monotonic() - began, used_by_session(process.pid)
                if time.monotonic() - began > LONGEST_S:
                    raise TimeoutError(f"{client.name} did not end within {LONGEST_S:g} s")
                time.sleep(0.005 if startup_s is None else 0.1)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    told = json.loads(used.read_text())
    if told["status"] != 0 or startup_s is None or startup_cpu_s is None:
        tail = (place.folder / "output.txt").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{client.name} ended with {told['status']}:\n{tail}")
    return told, startup_s, startup_cpu_s


def measure(client: Client, setting: Setting, number: int, server: Server, cores: tuple[int, int]) -> Run:
    folder = Path(tempfile.mkdtemp(prefix=f"{client.name.split()[0]}-"))
    try:
        place = Place(server.url, folder / "tokenizer", folder)
        write_tokenizer(place.tokenizer)
        told, startup_s, startup_cpu_s = run_client(client, setting, server, place, cores[1])
        log, said = server.log(), client.read(folder)
        true = truth(log, streams=setting.streams, tokens=setting.tokens)
        return Run(
            client.name,
            setting.streams,
            number,
            error(said.tokens_per_s, true.tokens_per_s),
            error(said.ttft_p50_ms, true.ttft_p50_ms),
            error(said.itl_p50_ms, true.itl_p50_ms),
            error(said.itl_p99_ms, true.itl_p99_ms),
            (told["cpu_s"] - startup_cpu_s) / log["tokens"] * 1000,
            startup_s,
            startup_cpu_s,
            log["tokens"],
            log["cpu_s"] / max(told["wall_s"] - startup_s, 1e-9),
            true,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def column(runs: Sequence[Run], client: str, streams: int, name: str) -> dict[int, float]:
    """Return one figure by round; errors without their sign. Empty where the client has no such figure."""
    values = {run.round: getattr(run, name) for run in runs if (run.client, run.streams) == (client, streams)}
    return {number: abs(value) for number, value in values.items() if value is not None}


def text(runs: Sequence[Run], client: str, streams: int, name: str) -> str:
    values = [getattr(run, name) for run in runs if (run.client, run.streams) == (client, streams)]
    present = [value for value in values if value is not None]
    if not present:
        return "–"
    mean, reach = mean_and_reach(present)
    if name in ACCURACY:
        return f"{mean:+.2%}" + ("" if reach is None else f" ±{reach:.2%}")
    return f"{mean:.3f}" if name == "cpu_s" else f"{mean:.1f}"


def table(runs: Sequence[Run], streams: int) -> list[str]:
    mine = [run for run in runs if run.streams == streams]
    rate = fmean(run.true.tokens_per_s for run in mine)
    busy = max(run.server_cpu_ratio for run in mine)
    lines = [f"{streams} streams, {rate:.0f} tok/s; the server used {busy:.0%} of its core at most"]
    lines.append("  " + f"{'client':<15}" + "".join(f"{head:>18}" for head in HEADS.values()))
    for client in dict.fromkeys(run.client for run in mine):
        lines.append("  " + f"{client:<15}" + "".join(f"{text(mine, client, streams, name):>18}" for name in HEADS))
    return lines


def bars(runs: Sequence[Run]) -> list[tuple[str, bool]]:
    """Return what is asked of ours, per column and setting: as good as the best peer; half the CPU of the cheapest."""
    said = []
    names = dict.fromkeys(run.client for run in runs)
    for streams in dict.fromkeys(run.streams for run in runs):
        for name, head in HEADS.items():
            ours = column(runs, OURS.name, streams, name)
            others = {peer: values for peer in names if peer != OURS.name and (values := column(runs, peer, streams, name))}
            if not ours or not others:
                continue
            best = min(others, key=lambda peer: fmean(others[peer].values()))
            both = sorted(ours.keys() & others[best].keys())
            mine, its = [ours[number] for number in both], [others[best][number] for number in both]
            seen = paired(mine, its)
            reach = "" if seen.reach is None else f" ±{seen.reach:.2g}"
            line = f"{streams:>4} streams  {head:<13} ours − {best}'s = {seen.difference:+.2g}{reach}"
            if name == "cpu_s":
                share = fmean(mine) / fmean(its)
                said.append((f"{line}: {share:.0%} of it", share <= CPU_SHARE))
            else:
                said.append((line, seen.as_good))
    return said


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--streams", type=int, nargs="+", default=[setting.streams for setting in SETTINGS])
    options.add_argument("--clients", nargs="+", default=[client.name for client in CLIENTS], help="names, ours included")
    options.add_argument("--cores", type=int, nargs=2, default=[0, 1], help="of the server, of the clients")
    options.add_argument("--python", default="python3.11", help="that makes the environments of the peers")
    options.add_argument(
        "--out", type=Path, help="file for every run, JSON lines, written as they end; runs that it has already count"
    )
    asked = options.parse_args()
    clients = [client for client in CLIENTS if client.name in asked.clients]
    settings = [setting for setting in SETTINGS if setting.streams in asked.streams]
    for client in clients:
        if client is not OURS:
            set_up(client.name, asked.python)
    for client in clients:
        print(f"{client.name} {client.version}; ITL: {client.itl}")
    runs = read_runs(asked.out) if asked.out is not None and asked.out.exists() else []
    first = max((run.round for run in runs), default=-1) + 1
    server = Server(asked.cores[0])
    try:
        for number in range(first, first + asked.rounds):
            for setting in settings:
                turn = number % len(clients)
                for client in clients[turn:] + clients[:turn]:
                    run = measure(client, setting, number, server, tuple(asked.cores))
                    runs.append(run)
                    print(f"round {number + 1}: {client.name} at {setting.streams} done", file=sys.stderr, flush=True)
                    if asked.out is not None:
                        with asked.out.open("a") as file:
                            file.write(line_of(run))
    finally:
        server.close()
    return show(runs)


def line_of(run: Run) -> str:
    return json.dumps(asdict(run)) + "\n"


def read_runs(file: Path) -> list[Run]:
    """Return what earlier calls measured."""
    rows = (json.loads(line) for line in file.read_text().splitlines())
    return [Run(**{**row, "true": Truth(**row["true"])}) for row in rows]


def show(runs: Sequence[Run]) -> int:
    for streams in dict.fromkeys(run.streams for run in runs):
        print("\n".join(table(runs, streams)))
    met = bars(runs)
    if not met:
        print("no peer beside ours was measured: nothing is compared")
        return 2
    print("errors without their sign, round by round, ours against the peer that is best in the column:")
    for line, good in met:
        print(f"  {'met   ' if good else 'MISSED'} {line}")
    return 0 if all(good for dummy, good in met) else 1


if __name__ == "__main__":
    sys.exit(main())
