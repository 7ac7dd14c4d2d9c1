# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The HTTP client: control calls and one streamed generation, each with a deadline. The API key never leaves the header."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..errors import InferopsError
from ..units import ns_to_s, s_to_ns
from .http1 import Exchange, HttpError, Pool, Target
from .stream import ServerSaidError, SseSplitter, Trace

CONNECT_TIMEOUT_S = 10.0
# Below the 5 s after which uvicorn closes an idle connection: a reused one could be closed under a request of ours.
KEEP_ALIVE_S = 1.0
ERROR_TEXT = 300
# An answer with more tokens than so many times what was asked for is not waited for.
OVERRUN = 4


def clean_base_url(base_url: str) -> str:
    """Return scheme, host, port and path without a trailing /v1; refuse credentials in the URL.

    >>> clean_base_url("http://127.0.0.1:30000/v1/")
    'http://127.0.0.1:30000'
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InferopsError(
            f"{base_url!r} is not an HTTP address", where="base_url", do="write for example http://127.0.0.1:30000"
        )
    if parts.username is not None or parts.password is not None or parts.query:
        raise InferopsError("the address carries credentials or a query", where="base_url", do="give the key in a file instead")
    return base_url.rstrip("/").removesuffix("/v1").rstrip("/")


def http_library() -> Any:
    """Return aiohttp, or say how to get it; imported late since only the gate needs it."""
    try:
        import aiohttp
    except ImportError as exc:
        raise InferopsError(
            "the load client needs the Python package aiohttp",
            why=str(exc),
            do="run with the tools environment, or pip install aiohttp",
        ) from exc
    return aiohttp


class _LateError(Exception):
    """A request has waited too long; ``limit_s`` says for what."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing within {limit_s:g} s")
        self.limit_s = limit_s


class _OverrunError(Exception):
    """An answer runs far past its limit."""


@dataclass(eq=False)
class _Watched:
    """A request under its two deadlines, both counted from when it was sent: the next token, and the whole answer."""

    exchange: Exchange
    trace: Trace
    stall_ns: int
    total_ns: int
    most_tokens: int | None

    def check(self, now_ns: int) -> None:
        sent = self.trace.sent_ns or 0
        if self.most_tokens is not None and self.trace.received_total > OVERRUN * self.most_tokens:
            self.exchange.fail(_OverrunError())
        elif now_ns - max(sent, self.trace.end_ns or 0) > self.stall_ns:
            self.exchange.fail(_LateError(ns_to_s(self.stall_ns)))
        elif now_ns - sent > self.total_ns:
            self.exchange.fail(_LateError(ns_to_s(self.total_ns)))


class Client:
    """One session against one server; ``clock_ns`` gives monotonic time since the start of the run."""

    def __init__(self, base_url: str, *, api_key: str | None = None, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.base_url = clean_base_url(base_url)
        self.clock_ns = clock_ns
        self.cut: list[Trace] = []
        """Requests that were cancelled by us before they ended."""
        self._aside: set[asyncio.Task[None]] = set()
        self._pool = Pool(Target.of(self.base_url), keep_alive_s=KEEP_ALIVE_S, connect_s=CONNECT_TIMEOUT_S)
        self._watched: set[_Watched] = set()
        self._looking: asyncio.TimerHandle | None = None
        self._look_every_s = 1.0
        self.api_key = api_key
        self._http = http_library()
        self._session: Any = None

    async def __aenter__(self) -> Client:
        headers = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        connector = self._http.TCPConnector(keepalive_timeout=KEEP_ALIVE_S)
        timeout = self._http.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        self._session = self._http.ClientSession(headers=headers, connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)
        if self._looking is not None:
            self._looking.cancel()
        self._pool.close()
        await self._session.close()

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the load; it is cut when the session closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, str]:
        """Return (status, body) of a control call; raise ConnectionError or TimeoutError as plain Python errors."""
        try:
            async with asyncio.timeout(timeout_s), self._session.get(self.base_url + path, allow_redirects=False) as response:
                return response.status, await response.text()
        except self._http.ClientError as exc:
            raise ConnectionError(self._redacted(str(exc) or type(exc).__name__)) from None

    async def get_json(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, Any]:
        """Return (status, parsed body or None)."""
        status, text = await self.get(path, timeout_s=timeout_s)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, None

    async def generate(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        stall_s: float,
        total_s: float,
        trace: Trace | None = None,
    ) -> Trace:
        """Stream one generation. Never raises for what the server does: the trace says ok or failed and why.

        Fails when no token arrives for ``stall_s`` seconds, the whole takes ``total_s``, or far more comes than the body asks
        for. A trace given in has its planned start already, and can be looked at while it grows.
        """
        trace = Trace(planned_ns=self.clock_ns()) if trace is None else trace
        request = self._pool.target.request(path, json.dumps(body).encode(), self.api_key)
        most = _asked_tokens(body)
        try:
            await self._exchange(request, trace, stall_s=stall_s, total_s=total_s, most_tokens=most)
        except _LateError as late:
            trace.timed_out = True
            trace.error = _timeout_text(trace, late.limit_s, self.clock_ns())
        except _OverrunError:
            trace.error = f"max_tokens {most} was ignored: {trace.received_total} tokens had come when we hung up"
        except TimeoutError:
            trace.timed_out = True
            trace.error = f"no connection within {CONNECT_TIMEOUT_S:g} s"
        except ServerSaidError as exc:
            trace.error = f"the server reported: {self._redacted(str(exc))}"
        except ValueError as exc:
            trace.error = f"malformed event in the stream: {self._redacted(str(exc))}"
        except OSError as exc:
            trace.error = f"connection lost: {self._redacted(str(exc) or type(exc).__name__)}"
        except asyncio.CancelledError:
            trace.status = "cancelled"
            trace.done_ns = self.clock_ns()
            self.cut.append(trace)
            raise
        trace.done_ns = self.clock_ns()
        trace.settle()
        if trace.error is None:
            trace.error = _incomplete(trace)
        trace.status = "ok" if trace.error is None else "failed"
        return trace

    async def _exchange(self, request: bytes, trace: Trace, *, stall_s: float, total_s: float, most_tokens: int | None) -> None:
        exchange, used = await self._pool.take()
        splitter, clock_ns, refused = SseSplitter(), self.clock_ns, bytearray()

        def on_body(data: bytes) -> None:
            now = clock_ns()
            if exchange.status != 200:
                refused.extend(data[:ERROR_TEXT])
                return
            for payload in splitter.feed(data):
                trace.take(payload, now)

        trace.sent_ns = clock_ns()
        watched = _Watched(exchange, trace, s_to_ns(stall_s), s_to_ns(total_s), most_tokens)
        self._watch(watched)
        try:
            await exchange.ask(request, on_body)
        except HttpError:
            # An idle connection that the server was closing just then: nothing of the request was answered.
            if not used or exchange.began:
                raise
            await self._exchange(request, trace, stall_s=stall_s, total_s=total_s, most_tokens=most_tokens)
            return
        finally:
            self._watched.discard(watched)
            self._pool.give(exchange)
        if exchange.status != 200:
            trace.http_status = exchange.status
            text = bytes(refused[:ERROR_TEXT]).decode("utf-8", "replace")
            trace.error = f"HTTP {exchange.status}: {self._redacted(text.strip())}"
            return
        for payload in splitter.close():
            trace.take(payload, clock_ns())

    def _watch(self, watched: _Watched) -> None:
        """Put one more request under the deadlines; one timer looks after all, since a timer per token costs more than it."""
        self._watched.add(watched)
        self._look_every_s = min(self._look_every_s, max(ns_to_s(watched.stall_ns) / 20, 0.005))
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(self._look_every_s, self._look)

    def _look(self) -> None:
        now = self.clock_ns()
        for watched in tuple(self._watched):
            watched.check(now)
        again = asyncio.get_running_loop().call_later(self._look_every_s, self._look) if self._watched else None
        self._looking = again

    def _redacted(self, text: str) -> str:
        return text if not self.api_key else text.replace(self.api_key, "[key]")


def _asked_tokens(body: Mapping[str, Any]) -> int | None:
    """Return how many tokens a body asks for at most, at whichever endpoint."""
    sampling = body.get("sampling_params", {})
    most: int | None = body.get("max_tokens", sampling.get("max_new_tokens"))
    return most


def _timeout_text(trace: Trace, limit_s: float, now_ns: int) -> str:
    if trace.end_ns is None:
        return f"accepts but does not generate: no token within {limit_s:g} s"
    if now_ns - trace.end_ns < s_to_ns(limit_s) / 2:
        return f"too slow: {trace.received_tokens} tokens had come after {limit_s:g} s, and the answer was not whole"
    return f"stopped generating after {trace.received_tokens} tokens: nothing more within {limit_s:g} s"


def _incomplete(trace: Trace) -> str | None:
    if trace.output_tokens is None and not trace.finished:
        return "the stream ended early, without usage and end mark"
    if not trace.chunks:
        claimed = "no tokens" if not trace.output_tokens else f"{trace.output_tokens} tokens in usage"
        return f"no text was delivered ({claimed})"
    return None
