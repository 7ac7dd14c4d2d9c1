# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The load of a point split over worker processes: planned, counted and stopped here, sent and read there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from ..units import ns_to_s
from .clocks import STALLED_S
from .load import PointLoad
from .stream import Trace
from .worker import Ended, Grown, Job, Order, packed, received

START_S = 30.0
CLOSE_S = 5.0
# A process that crashed closes its socket before it ends with a status.
CRASH_S = 1.0
LOST = "load worker lost"


class WorkerLostError(Exception):
    """A worker process is gone in the middle of its work; LoadWorkers.doubts tells why."""


@dataclass(eq=False)
class _Process:
    name: str
    handle: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pending: dict[int, tuple[Trace, asyncio.Future[None]]] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    seen_ns: int | None = None
    longest_silence_ns: int = 0
    lost: bool = False
    stuck: bool = False
    cpu_s: tuple[float, float] | None = None
    """Processor time when the load began and when it was last looked at."""


class LoadWorkers:
    """So many processes for one point. ``send`` is that of the loops (load.py); ``cut`` are the requests that we cancelled.

    A request goes to the process with the fewest in flight, so that each holds its share of any load. Its planned start is
    set here, before the way to the process: what that takes is in its latencies, like any wait.
    """

    def __init__(self, count: int, job: Job, load: PointLoad, *, clock_ns: Callable[[], int]) -> None:
        self.count, self._job, self._load, self._clock_ns = count, job, load, clock_ns
        self.cut: list[Trace] = []
        self._processes: list[_Process] = []
        self._listening: list[asyncio.Task[None]] = []
        self._closing = False

    async def start(self) -> None:
        """Start all and wait until each is ready, so that they begin together; raise WorkerLostError where one is not."""
        for index in range(self.count):
            process = await _spawned(f"load worker {index + 1} of {self.count}")
            self._processes.append(process)
            process.writer.write(packed(self._job))
            self._listening.append(asyncio.create_task(self._listen(process)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                for process in self._processes:
                    await process.ready.wait()
        for process in self._processes:
            process.lost = process.lost or process.seen_ns is None
            begun = cpu_s(process.handle.pid)
            process.cpu_s = None if begun is None else (begun, begun)
        if any(process.lost for process in self._processes):
            raise WorkerLostError

    async def send(self, number: int, short: bool, trace: Trace) -> None:
        """Have one request sent and wait until it has ended; ``trace`` grows meanwhile, five times a second."""
        process = min(self._processes, key=lambda one: len(one.pending))
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        process.pending[number] = (trace, ended)
        try:
            if process.lost:
                raise WorkerLostError
            process.writer.write(packed(Order(number, trace.planned_ns, short)))
            await ended
        except (asyncio.CancelledError, WorkerLostError):
            trace.status, trace.done_ns = "cancelled", self._clock_ns()
            self.cut.append(trace)
            raise

    async def close(self) -> None:
        """End all; what they had received of the requests that were cut is handed over first. Leaves no process behind."""
        self._closing = True
        self.look()
        try:
            for process in self._processes:
                process.writer.write(packed(None))
            if self._listening:
                await asyncio.wait(self._listening, timeout=CLOSE_S)
            for process, listening in zip(self._processes, self._listening, strict=False):
                process.stuck = not listening.done()
                listening.cancel()
        finally:
            for process in self._processes:
                process.writer.close()
                if process.lost:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.handle.wait(CRASH_S)
                # It has said its last word; on its own it would end after tidying up.
                process.handle.kill()
                process.handle.wait()

    def look(self) -> dict[str, float]:
        """Return the processor time of each live process [s]."""
        found = {}
        for process in self._processes:
            now = cpu_s(process.handle.pid) if process.handle.returncode is None else None
            if now is not None and process.cpu_s is not None:
                process.cpu_s = (process.cpu_s[0], now)
                found[process.name] = now
        return found

    def busy(self, elapsed_s: float) -> dict[str, float]:
        """Return the share of a processor that each process used during the load."""
        known = {process.name: process.cpu_s for process in self._processes if process.cpu_s is not None}
        return {name: (end - begin) / elapsed_s for name, (begin, end) in known.items()} if elapsed_s > 0 else {}

    def doubts(self) -> list[str]:
        """Return why the figures of this load are not whole or not the server's, one sentence each."""
        found = []
        for process in self._processes:
            if process.lost or process.stuck:
                found.append(f"{process.name} {_ending(process)}: what had been measured until then is kept")
            elif process.longest_silence_ns > STALLED_S * 1e9:
                silence = ns_to_s(process.longest_silence_ns)
                found.append(f"{process.name} was not run for {silence:.1f} s: stopped, or its machine is overloaded")
        return found

    async def _listen(self, process: _Process) -> None:
        with contextlib.suppress(EOFError):
            while True:
                self._take(process, await received(process.reader))
        process.lost = process.lost or not self._closing
        process.ready.set()
        for dummy, ended in process.pending.values():
            if not ended.done():
                ended.set_exception(WorkerLostError())

    def _take(self, process: _Process, message: Grown | Ended) -> None:
        if isinstance(message, Grown):
            for number, times, counts in message.news:
                if number in process.pending:
                    _grow(process.pending[number][0], times, counts)
            if process.seen_ns is not None:
                process.longest_silence_ns = max(process.longest_silence_ns, message.seen_ns - process.seen_ns)
            process.seen_ns = message.seen_ns
            process.ready.set()
            self._load.seen_ns = min(one.seen_ns or 0 for one in self._processes)
            return
        trace, ended = process.pending.pop(message.number)
        _become(trace, message.trace)
        if not ended.done():
            ended.set_result(None)


def cpu_s(pid: int) -> float | None:
    """Return the processor time of a process [s], None when there is none: the clock that clock_getcpuclockid(3) names."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _become(trace: Trace, seen: Trace) -> None:
    """Take over what a worker saw. Of a request that we cut, nothing that came after."""
    cut_ns = trace.done_ns if trace.status == "cancelled" else None
    for one in fields(Trace):
        setattr(trace, one.name, getattr(seen, one.name))
    if cut_ns is not None:
        trace.status, trace.error, trace.done_ns = "cancelled", None, cut_ns
        _shorten(trace, cut_ns)


def _grow(trace: Trace, times: array[int], counts: array[int]) -> None:
    trace.chunks.times.extend(times)
    trace.chunks.counts.extend(counts)
    if trace.status == "cancelled" and trace.done_ns is not None:
        _shorten(trace, trace.done_ns)


def _shorten(trace: Trace, end_ns: int) -> None:
    while trace.chunks.times and trace.chunks.times[-1] > end_ns:
        trace.chunks.times.pop()
        trace.chunks.counts.pop()


def _ending(process: _Process) -> str:
    code = process.handle.returncode
    if process.stuck:
        return f"did not hand over what it had within {CLOSE_S:g} s and was killed"
    if process.seen_ns is None:
        return f"did not start (status {code}; its messages are in the log)"
    return f"died (signal {-code})" if code < 0 else f"ended (status {code})"


async def _spawned(name: str) -> _Process:
    """Start this package again; where Ansible runs it from, an archive, that is the path as well."""
    ours, theirs = socket.socketpair()
    package = __name__.rpartition(".")[0]
    program = f"import sys; from {package}.worker import main; sys.exit(main(sys.argv[1:]))"
    with theirs:
        handle = subprocess.Popen(
            [sys.executable, "-c", program, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[__name__.count(".")])},
        )
    reader, writer = await asyncio.open_connection(sock=ours)
    return _Process(name, handle, reader, writer)
