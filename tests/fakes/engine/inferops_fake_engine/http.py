"""A small HTTP/1.1 server on asyncio: keep-alive, chunked answers, and word when the client has gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from .link import Link

MAX_BODY = 64 << 20


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: str

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object, status: int = 200) -> Response:
        return cls(status, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), "application/json")


@dataclass(frozen=True)
class Stream:
    chunks: AsyncIterator[bytes]
    content_type: str = "text/event-stream; charset=utf-8"
    status: int = 200


Handler = Callable[[Request], Awaitable[Response | Stream]]
AccessLog = Callable[[Request, int], None]


class HttpServer:
    def __init__(self, handler: Handler, access_log: AccessLog, link: Link) -> None:
        self._handler = handler
        self._link = link
        self._access_log = access_log
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._client, host, port, limit=1 << 20)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await self._read(reader, writer)) is not None:
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
        line = await reader.readline()
        if not line.strip():
            return None
        method, target, dummy = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (raw := await reader.readline()).strip():
            name, dummy, value = raw.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        else:
            length = int(headers.get("content-length", "0"))
            if length > MAX_BODY:
                raise ValueError("body too large")
            body = await reader.readexactly(length)
        peer = writer.get_extra_info("peername")
        where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "-"
        return Request(method, target.split("?", 1)[0], headers, body, where)

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        task = asyncio.ensure_future(self._handler(request))
        while not task.done():
            await asyncio.wait({task}, timeout=0.5)
            if not task.done() and reader.at_eof():
                task.cancel()
                return False
        answer = task.result()
        self._access_log(request, answer.status)
        keep = request.headers.get("connection", "").lower() != "close"
        head = [
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
            f"date: {formatdate(usegmt=True)}",
            "server: uvicorn",
        ]
        if answer.content_type:
            head.append(f"content-type: {answer.content_type}")
        if isinstance(answer, Stream):
            head += ["vary: Origin", "Transfer-Encoding: chunked"]
            writer.write("\r\n".join([*head, "", ""]).encode())
            await self._link.open()
            return await self._pour(answer.chunks, reader, writer) and keep
        head.append(f"content-length: {len(answer.body)}")
        head += [f"{k}: {v}" for k, v in answer.headers.items()]
        body = b"" if request.method == "HEAD" else answer.body
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        return keep

    async def _pour(self, chunks: AsyncIterator[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            async for chunk in chunks:
                if reader.at_eof():
                    return False
                await self._link.carry(len(chunk))
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
