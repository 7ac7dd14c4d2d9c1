# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The front: a socket-activated TCP relay that can drain.

systemd-socket-proxyd keeps its copy of the listening socket when the socket unit stops: it either goes on admitting clients or
has to be killed together with the answers it is relaying. This one closes its listener on SIGTERM and lets open connections end;
a second SIGTERM ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Mapping

from .notify import Notifier

FIRST_PASSED_FD = 3
CHUNK_BYTES = 1 << 16
CONNECT_S = 5.0


async def relay(listeners: list[socket.socket], host: str, port: int, notifier: Notifier) -> None:
    """Relay every accepted connection to host:port until told to stop and the last connection has ended."""
    connections: set[asyncio.Task[None]] = set()
    stopping = asyncio.Event()
    ended = asyncio.Event()

    def on_term() -> None:
        if stopping.is_set():
            ended.set()
        stopping.set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            connections.add(task)
            task.add_done_callback(connections.discard)
        await one_connection(reader, writer, host, port)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_term)
    servers = [await asyncio.start_server(accepted, sock=listener) for listener in listeners]
    notifier.ready(f"relays to {host}:{port}")
    await stopping.wait()
    for server, listener in zip(servers, listeners, strict=True):
        # systemd keeps its copy until this service has ended, and would let clients queue up: end the listening itself.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        server.close()
    notifier.stopping(f"closed; {len(connections)} connections end by themselves")
    while connections and not ended.is_set():
        waits = {asyncio.ensure_future(ended.wait()), *connections}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        notifier.status(f"closed; {len(connections)} connections end by themselves")
    for task in connections:
        task.cancel()


async def one_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Copy both ways until both ends are done; a half-closed connection goes on in the other direction."""
    try:
        far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
    except (OSError, TimeoutError):
        writer.transport.abort()
        return
    try:
        up = asyncio.ensure_future(_copy(reader, far_writer))
        down = asyncio.ensure_future(_copy(far_reader, writer))
        # The server's end decides: when it is done, a client that keeps its side open keeps nothing alive.
        await down
        up.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await up
    finally:
        for end in (writer, far_writer):
            end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def passed_sockets(environ: Mapping[str, str], pid: int) -> list[socket.socket]:
    """Return the listening sockets that systemd passed (sd_listen_fds(3)); none when they are not for this process."""
    if environ.get("LISTEN_PID") != str(pid):
        return []
    return [socket.socket(fileno=FIRST_PASSED_FD + index) for index in range(int(environ.get("LISTEN_FDS", "0")))]


def main(to: str) -> int:
    """Run the front on the sockets passed by systemd."""
    host, dummy, port = to.rpartition(":")
    listeners = passed_sockets(os.environ, os.getpid())
    if not listeners:
        print("no socket was passed: this program is started by a systemd socket unit")
        return 2
    for listener in listeners:
        listener.setblocking(False)
    asyncio.run(relay(listeners, host, int(port), Notifier(os.environ)))
    return 0
