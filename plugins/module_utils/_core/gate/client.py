# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The HTTP client: control calls and one streamed generation, each with a deadline. The API key never leaves the header."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..errors import InferopsError
from .stream import ServerSaidError, SseSplitter, Trace

CONNECT_TIMEOUT_S = 10.0
# Below the 5 s after which uvicorn closes an idle connection: a reused one could be closed under a request of ours.
KEEP_ALIVE_S = 1.0
ERROR_TEXT = 300


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


class Client:
    """One session against one server; ``clock_ns`` gives monotonic time since the start of the run."""

    def __init__(self, base_url: str, *, api_key: str | None = None, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.base_url = clean_base_url(base_url)
        self.clock_ns = clock_ns
        self.cut: list[Trace] = []
        """Requests that were cancelled by us before they ended."""
        self._aside: set[asyncio.Task[None]] = set()
        self._api_key = api_key
        self._http = http_library()
        self._session: Any = None

    async def __aenter__(self) -> Client:
        headers = {} if self._api_key is None else {"Authorization": f"Bearer {self._api_key}"}
        connector = self._http.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        timeout = self._http.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        self._session = self._http.ClientSession(headers=headers, connector=connector, timeout=timeout, read_bufsize=1 << 20)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)
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
        on_tokens: Callable[[int], None] = lambda gained: None,
    ) -> Trace:
        """Stream one generation. Never raises for what the server does: the trace says ok or failed and why.

        Fails when no token arrives for ``stall_s`` seconds or the whole takes ``total_s``.
        """
        trace = Trace(planned_ns=self.clock_ns())
        try:
            async with asyncio.timeout(total_s), asyncio.timeout(stall_s) as stall:

                def moved(gained: int) -> None:
                    stall.reschedule(asyncio.get_running_loop().time() + stall_s)
                    on_tokens(gained)

                await self._stream(path, body, trace, on_tokens=moved)
        except TimeoutError:
            trace.error = _timeout_text(trace, stall_s if stall.expired() else total_s)
        except ServerSaidError as exc:
            trace.error = f"the server reported: {self._redacted(str(exc))}"
        except ValueError as exc:
            trace.error = f"malformed event in the stream: {self._redacted(str(exc))}"
        except (self._http.ClientError, OSError) as exc:
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

    async def _stream(self, path: str, body: Mapping[str, Any], trace: Trace, *, on_tokens: Callable[[int], None]) -> None:
        splitter = SseSplitter()
        async with self._session.post(self.base_url + path, json=body, allow_redirects=False) as response:
            if response.status != 200:
                trace.http_status = response.status
                text = (await response.text())[:ERROR_TEXT]
                trace.error = f"HTTP {response.status}: {self._redacted(text.strip())}"
                return
            async for data in response.content.iter_any():
                now = self.clock_ns()
                gained = 0
                for payload in splitter.feed(data):
                    gained += trace.take(payload, now)
                if gained:
                    on_tokens(gained)

    def _redacted(self, text: str) -> str:
        return text if not self._api_key else text.replace(self._api_key, "[key]")


def _timeout_text(trace: Trace, limit_s: float) -> str:
    if not trace.chunks:
        return f"accepts but does not generate: no token within {limit_s:g} s"
    return f"stopped generating after {trace.received_tokens} tokens: nothing more within {limit_s:g} s"


def _incomplete(trace: Trace) -> str | None:
    if trace.output_tokens is None and not trace.finished:
        return "the stream ended early, without usage and end mark"
    if not trace.chunks:
        claimed = "no tokens" if not trace.output_tokens else f"{trace.output_tokens} tokens in usage"
        return f"no text was delivered ({claimed})"
    return None
