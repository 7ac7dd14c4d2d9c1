"""One server over several hosts: the ranks meet, hold on to each other, and none outlives another.

Read in SGLang 0.5.23: a rank above 0 serves /ping, /health and /health_generate alone, once it is loaded
(srt/utils/common.py:3624). It only notes a SIGTERM and ends when rank 0 shuts down (srt/entrypoints/engine.py:1265).
How a lost peer ends it is assumed: like a crash.
"""

from __future__ import annotations

import asyncio
import contextlib

from . import log
from .http import Request, Response
from .state import Server

RETRY_S = 0.1
OVER = b"shutdown\n"


class Ranks:
    """This rank's connections to the others; without others they never end."""

    def __init__(self, server: Server) -> None:
        args = server.args
        self.nnodes, self.rank = int(args["nnodes"]), int(args["node_rank"])
        host, dummy, port = str(args["dist_init_addr"] or "127.0.0.1:0").rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)
        self.writers: list[asyncio.StreamWriter] = []
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()  # true: in good order
        self.listener: asyncio.Server | None = None

    async def meet(self) -> None:
        """Return when all ranks are there; SGLang too waits there before it loads."""
        if self.nnodes == 1:
            return
        log.line(f"Init torch distributed begin. rank {self.rank} of {self.nnodes} (simulated)")
        if self.rank:
            while not self.writers:
                try:
                    reader, writer = await asyncio.open_connection(self.host, self.port)
                except OSError:
                    await asyncio.sleep(RETRY_S)
                    continue
                self._hold(reader, writer)
            return
        everyone = asyncio.Event()

        async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._hold(reader, writer)
            if len(self.writers) == self.nnodes - 1:
                everyone.set()

        self.listener = await asyncio.start_server(joined, self.host, self.port)
        await everyone.wait()

    def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self._watching = asyncio.ensure_future(self._watch(reader))

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        heard = b""
        with contextlib.suppress(OSError):
            heard = await reader.readline()
        if not self.ended.done():
            self.ended.set_result(heard == OVER)

    async def shut_down(self) -> None:
        """Tell the others that it is over, as rank 0 does when it ends in good order."""
        if not self.ended.done():
            self.ended.set_result(True)
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.write(OVER)
                await writer.drain()
        if self.listener:
            self.listener.close()


def follower_answer(request: Request) -> Response:
    """Answer as a rank above 0 does."""
    if request.method in ("GET", "HEAD") and request.path in ("/ping", "/health", "/health_generate"):
        return Response(200)
    return Response.json({"detail": "Not Found"}, 404)
