# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One load worker: a process that sends the requests its parent plans, and hands back what it saw of them as they grow."""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import struct
import time
from array import array
from dataclasses import dataclass
from typing import Any

from .client import Client
from .stream import Trace
from .wire import Wire

FLUSH_S = 0.2
_LENGTH = struct.Struct("!I")


@dataclass(frozen=True)
class Job:
    """What a worker is told before any request; it goes through the socket, since it holds the API key."""

    base_url: str
    api_key: str | None
    start_ns: int
    """Zero of the parent's clock in time.monotonic_ns, which all processes of a machine share."""
    wire: Wire
    point: int
    warm_up_tokens: int
    stall_s: float
    total_s: float


@dataclass(frozen=True)
class Order:
    number: int
    planned_ns: int
    short: bool


@dataclass(frozen=True)
class Grown:
    """New chunks of requests on their way. Up to ``seen_ns`` nothing that arrived is left out."""

    seen_ns: int
    news: list[tuple[int, array[int], array[int]]]


@dataclass(frozen=True)
class Ended:
    number: int
    trace: Trace


def packed(message: Any) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


async def received(reader: asyncio.StreamReader) -> Any:
    """Return the next message; raise EOFError when the other side is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError) as exc:
        raise EOFError from exc


class Worker:
    """Serves one point: orders in, traces out, until it is told to end or its parent is gone."""

    def __init__(self, job: Job, client: Client, writer: asyncio.StreamWriter) -> None:
        self._job, self._client, self._writer = job, client, writer
        self._going: dict[int, Trace] = {}
        self._told: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, reader: asyncio.StreamReader) -> None:
        self._flush()
        flushing = asyncio.create_task(self._keep_flushing())
        while (order := await received(reader)) is not None:
            task = asyncio.create_task(self._one(order))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        flushing.cancel()
        cut = tuple(self._tasks)
        for task in cut:
            task.cancel()
        await asyncio.gather(flushing, *cut, return_exceptions=True)
        await self._writer.drain()

    async def _one(self, order: Order) -> None:
        job, client = self._job, self._client
        trace = self._going[order.number] = Trace(planned_ns=order.planned_ns, taken_up_ns=client.clock_ns())
        body = job.wire.body(job.point, order.number, output_tokens=job.warm_up_tokens if order.short else None)
        try:
            await client.generate(job.wire.path, body, stall_s=job.stall_s, total_s=job.total_s, trace=trace)
        finally:
            del self._going[order.number]
            self._told.pop(order.number, None)
            self._writer.write(packed(Ended(order.number, trace)))

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            self._flush()

    def _flush(self) -> None:
        news = []
        for number, trace in self._going.items():
            told, times = self._told.get(number, 0), trace.chunks.times
            if len(times) > told:
                news.append((number, times[told:], trace.chunks.counts[told:]))
                self._told[number] = len(times)
        self._writer.write(packed(Grown(self._client.clock_ns(), news)))


async def _serve(own: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=own)
    try:
        job: Job = await received(reader)
        async with Client(job.base_url, api_key=job.api_key, clock_ns=lambda: time.monotonic_ns() - job.start_ns) as client:
            await Worker(job, client, writer).run(reader)
    except EOFError:
        return  # Nobody plans any more: what is in flight is cut by leaving.
    finally:
        writer.close()


def main(words: list[str]) -> int:
    """Body of the process; ``words``: file descriptor of its end of the socket pair."""
    # Ctrl-C and a stop of the unit reach every process of a group; the parent decides, and its end ends this one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_serve(socket.socket(fileno=int(words[0]))))
    return 0
