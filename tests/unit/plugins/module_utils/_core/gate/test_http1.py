# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The streamed exchange: any cut of an answer gives the same body, and what is not HTTP/1.1 is an error, not a token."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.client import Client
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.http1 import Exchange, HttpError, Target
from hypothesis import given
from hypothesis import strategies as st

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
EVENT = b'data: {"choices": [{"text": "x"}]}\n\n'


class Wire(asyncio.Transport):
    """Takes what is written and never fails."""

    def __init__(self):
        super().__init__()
        self.closed = False

    def write(self, data):
        self.written = data

    def abort(self):
        self.closed = True

    def is_closing(self):
        return self.closed


def chunked(parts, trailer=b""):
    framed = b"".join(f"{len(part):x};ext=1\r\n".encode() + part + b"\r\n" for part in parts if part)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n" + trailer + b"\r\n"


def told(answer, cuts=(), *, ends=False):
    """Return (body, exchange) of an answer that arrives in pieces; ``ends`` closes the connection after it."""

    async def play():
        buffer = bytearray(1 << 16)
        exchange, body = Exchange(buffer), bytearray()
        exchange.connection_made(Wire())
        asking = asyncio.ensure_future(exchange.ask(b"POST / HTTP/1.1\r\n\r\n", body.extend))
        await asyncio.sleep(0)
        last = 0
        for cut in [*sorted(cuts), len(answer)]:
            piece = answer[last:cut]
            last = max(last, cut)
            if piece:
                exchange.get_buffer(-1)[: len(piece)] = piece
                exchange.buffer_updated(len(piece))
        if ends:
            exchange.connection_lost(None)
        async with asyncio.timeout(5):
            await asking
        return bytes(body), exchange

    return asyncio.run(play())


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 300), max_size=6), st.booleans())
def test_a_chunked_answer_is_the_same_wherever_it_is_cut(parts, cuts, with_trailer):
    body, exchange = told(chunked(parts, b"X-Took: 1\r\n" if with_trailer else b""), cuts)
    assert body == b"".join(parts)
    assert exchange.usable


@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(0, 200), max_size=4))
def test_length_and_end_of_connection_delimit_as_well(body, cuts):
    by_length = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    assert told(by_length, cuts)[0] == body
    assert told(HEAD + b"\r\n" + body, cuts, ends=True)[0] == body


def test_an_interim_answer_is_skipped_and_a_closing_one_is_not_reused():
    assert told(b"HTTP/1.1 100 Continue\r\n\r\n" + chunked([b"a"]))[0] == b"a"
    closing = HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\na"
    assert told(closing)[1].usable is False


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", False),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n", False),
        (chunked([b"abc"])[:-8], True),
        (HEAD + b"Content-Length: 10\r\n\r\nabc", True),
        (b"", True),
    ],
)
def test_what_is_not_a_whole_answer_is_an_error(answer, ends):
    with pytest.raises(HttpError):
        told(answer, ends=ends)


def test_a_chunk_size_that_is_no_number_is_an_error():
    with pytest.raises(ValueError, match="invalid literal"):
        told(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://[::1]:30000", "Host: [::1]:30000"),
        ("https://gpu1/openai", "POST /openai/v1/completions HTTP/1.1"),
        ("http://gpu1:80", "Content-Length: 2"),
    ],
)
def test_the_request_names_host_path_and_length(url, line):
    head, dummy, body = Target.of(url).request("/v1/completions", b"{}", None).partition(b"\r\n\r\n")
    assert line in head.decode().split("\r\n")
    assert body == b"{}"
    assert b"Authorization" not in head


async def streamed(behaviours, *, requests):
    """Ask a server ``requests`` times in a row that treats its connections, one after the other, as told."""
    left = list(behaviours)

    async def serve(reader, writer):
        for answer in left.pop(0):
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(f"http://127.0.0.1:{port}") as client:
        traces = []
        for dummy in range(requests):
            traces.append(await client.generate("/v1/completions", {}, stall_s=2, total_s=5))
            await asyncio.sleep(0.05)
        return traces


WHOLE = chunked([EVENT, b"data: [DONE]\n\n"])


def test_an_idle_connection_closed_by_the_server_costs_no_request():
    """The second request goes over a connection that the server has closed meanwhile, and is sent once more."""
    traces = asyncio.run(streamed([[WHOLE], [WHOLE]], requests=2))
    assert [trace.status for trace in traces] == ["ok", "ok"]


def test_a_connection_that_breaks_in_the_answer_is_a_failure_and_not_repeated():
    traces = asyncio.run(streamed([[WHOLE[:-20]], [WHOLE]], requests=1))
    assert traces[0].status == "failed"
    assert "connection lost" in traces[0].error
