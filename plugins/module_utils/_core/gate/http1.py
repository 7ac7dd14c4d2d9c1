# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One streamed HTTP/1.1 exchange on asyncio's own transports: the path that every token takes, so it is short.

A general HTTP library spends more on handing a chunk from task to task than is needed to read it; at 15,000 tokens a second
that alone fills a core.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

MOST_HEAD = 65536
READ_BYTES = 1 << 16
HEAD_END = b"\r\n\r\n"


class HttpError(OSError):
    """The other side broke off or does not speak HTTP/1.1 as we need it."""


@dataclass(frozen=True)
class Target:
    """Where requests of one base URL go; ``prefix`` is the path in front of the API's own."""

    host: str
    port: int
    secure: bool
    prefix: str = ""

    @classmethod
    def of(cls, base_url: str) -> Target:
        """Return the target of a clean base URL.

        >>> Target.of("https://gpu1/openai")
        Target(host='gpu1', port=443, secure=True, prefix='/openai')
        """
        parts = urlsplit(base_url)
        secure = parts.scheme == "https"
        return cls(parts.hostname or "", parts.port or (443 if secure else 80), secure, parts.path.rstrip("/"))

    def request(self, path: str, body: bytes, api_key: str | None) -> bytes:
        """Return the whole POST request."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        head = [
            f"POST {self.prefix}{path} HTTP/1.1",
            f"Host: {name}:{self.port}",
            "Content-Type: application/json",
            "Accept: text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if api_key is not None:
            head.append(f"Authorization: Bearer {api_key}")
        return "\r\n".join([*head, "", ""]).encode() + body


class Exchange(asyncio.BufferedProtocol):
    """One connection. ``ask`` sends a request and resolves when its answer has ended; then it may be asked again.

    ``on_body`` gets the payload as it arrives, transfer encoding taken off; what it raises ends the exchange. All connections
    of a loop read into one buffer: the 256 KiB that asyncio else allocates for each read cost more than everything here.
    """

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.status: int | None = None
        self.reusable = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport
        self._done: asyncio.Future[None] | None = None
        self._on_body: Callable[[bytes], None]
        self._rest = b""
        self._in_head = True
        self._left: int | None = None
        self._chunked = False

    @property
    def began(self) -> bool:
        """Tell whether a byte of the answer has come."""
        return self.status is not None or bool(self._rest)

    @property
    def usable(self) -> bool:
        return self.reusable and not self._transport.is_closing()

    async def ask(self, request: bytes, on_body: Callable[[bytes], None]) -> None:
        self.status, self.reusable = None, False
        self._on_body, self._rest, self._in_head, self._left, self._chunked = on_body, b"", True, None, False
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await self._done
        except BaseException:
            self.close()
            raise

    def fail(self, error: BaseException) -> None:
        """End the exchange from outside, such as at a deadline."""
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def close(self) -> None:
        self.reusable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if not self._in_head and not self._chunked and self._left is None and exc is None:
            self._finish()
        else:
            self.fail(HttpError(str(exc) if exc else "the server closed the connection"))

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(self._buffer)[:nbytes])
        if self._done is None or self._done.done():
            # An answer that goes on after its end, or bytes nobody asked for: never reuse such a connection.
            self.close()
            return
        try:
            if self._in_head:
                data = self._head(self._rest + data)
            if data:
                self._body(data)
        except Exception as exc:
            self.fail(exc)

    def _head(self, data: bytes) -> bytes:
        """Read the head; return the bytes of the body that came with it."""
        head, end, rest = data.partition(HEAD_END)
        if not end:
            if len(data) > MOST_HEAD:
                raise HttpError("the answer has no end of its head")
            self._rest = data
            return b""
        self._rest = b""
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            raise HttpError(f"the answer is not HTTP/1.1: {lines[0][:60]!r}")
        status = int(words[1])
        if status < 200:
            return self._head(rest)
        fields = {name.strip().lower(): value.strip() for name, dummy, value in (line.partition(":") for line in lines[1:])}
        if fields.get("content-encoding", "identity").lower() != "identity":
            raise HttpError(f"the answer is encoded as {fields['content-encoding']}, which was not asked for")
        self.status, self._in_head = status, False
        self._chunked = "chunked" in fields.get("transfer-encoding", "").lower()
        length = fields.get("content-length", "")
        self._left = None if self._chunked else (int(length) if length.isdigit() else None)
        keeps = "close" not in fields.get("connection", "").lower() and words[0] != "HTTP/1.0"
        self.reusable = keeps and (self._chunked or self._left is not None)
        if status in (204, 304) or (self._left == 0 and not self._chunked):
            self._finish()
        return rest

    def _body(self, data: bytes) -> None:
        if self._chunked:
            self._chunks(data)
            return
        if self._left is None:
            self._on_body(data)
            return
        self._left -= len(data)
        self._on_body(data if self._left >= 0 else data[: self._left])
        if self._left <= 0:
            self.reusable = self.reusable and self._left == 0
            self._finish()

    def _chunks(self, data: bytes) -> None:
        """Take the chunked transfer encoding off; an unfinished chunk waits in ``_rest``."""
        if self._rest:
            data = self._rest + data
        at = 0
        parts: list[bytes] = []
        while True:
            line = data.find(b"\r\n", at)
            if line < 0:
                break
            size = int(data[at:line].partition(b";")[0], 16)
            end = line + 2 + size
            if size == 0:
                # Trailer fields, if any, end with an empty line as well.
                last = data.find(HEAD_END, line)
                if data[end : end + 2] != b"\r\n" and last < 0:
                    break
                self._rest = b""
                self._deliver(parts)
                self._finish()
                return
            if len(data) < end + 2:
                break
            parts.append(data[line + 2 : end])
            at = end + 2
        self._rest = data[at:]
        self._deliver(parts)

    def _deliver(self, parts: list[bytes]) -> None:
        if parts:
            self._on_body(parts[0] if len(parts) == 1 else b"".join(parts))

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)


class Pool:
    """Connections to one target; one that has been idle longer than ``keep_alive_s`` is not used again."""

    def __init__(self, target: Target, *, keep_alive_s: float, connect_s: float) -> None:
        self.target = target
        self._keep_alive_s, self._connect_s = keep_alive_s, connect_s
        self._idle: list[Exchange] = []
        self._all: set[Exchange] = set()
        self._buffer = bytearray(READ_BYTES)
        self._ssl = ssl.create_default_context() if target.secure else None

    async def take(self) -> tuple[Exchange, bool]:
        """Return (connection, whether it was used before)."""
        loop = asyncio.get_running_loop()
        while self._idle:
            known = self._idle.pop()
            if known.usable and loop.time() - known.idle_since < self._keep_alive_s:
                return known, True
            self._drop(known)
        async with asyncio.timeout(self._connect_s):
            dummy, made = await loop.create_connection(
                lambda: Exchange(self._buffer), self.target.host, self.target.port, ssl=self._ssl
            )
        self._all.add(made)
        return made, False

    def give(self, exchange: Exchange) -> None:
        if exchange.usable:
            exchange.idle_since = asyncio.get_running_loop().time()
            self._idle.append(exchange)
        else:
            self._drop(exchange)

    def close(self) -> None:
        for exchange in self._all:
            exchange.close()
        self._all.clear()

    def _drop(self, exchange: Exchange) -> None:
        exchange.close()
        self._all.discard(exchange)
