# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The HTTP API of sglang-router 0.3.2 by which workers come and go while it runs; what is said here was executed.

POST /workers and DELETE /workers/ID are queued (202): what has become of them is read from GET /workers. A worker that is removed
gets no new request, and the answers it has begun go on. The list is held in memory: a router that is started again knows none.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError

# Between hosts of one site: a proxy from the environment must not see these requests, nor the keys in them.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ANSWER_LIMIT_BYTES = 16 << 20
POLL_S = 0.25

Send = Callable[[str, str, "str | None", "Mapping[str, Any] | None"], "tuple[int | None, str]"]


def send(
    method: str, url: str, key: str | None, body: Mapping[str, Any] | None, timeout_s: float = 5.0
) -> tuple[int | None, str]:
    """Send one request; return status and text. None means that there was no answer, the text then says why."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with OPENER.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read(ANSWER_LIMIT_BYTES).decode(errors="replace")
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read(4096).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return None, str(getattr(exc, "reason", None) or exc or type(exc).__name__)


@dataclass(frozen=True)
class Worker:
    """A server as the router lists it."""

    id: str
    url: str
    healthy: bool


@dataclass(frozen=True)
class RouterApi:
    """One router. ``key`` is its own, for those who may change its workers."""

    url: str
    key: str | None = None
    send: Send = send

    def workers(self) -> dict[str, Worker]:
        """Return the workers by address."""
        status, text = self.send("GET", f"{self.url}/workers", self.key, None)
        if status != 200:
            raise self._refused("does not tell its workers", status, text)
        try:
            rows = json.loads(text)["workers"]
            found = [Worker(str(row["id"]), str(row["url"]).rstrip("/"), row["is_healthy"] is True) for row in rows]
        except (ValueError, KeyError, TypeError):
            raise self._refused("tells its workers in an unknown shape", status, text) from None
        return {worker.url: worker for worker in found}

    def add(self, worker: str, worker_key: str | None = None) -> None:
        """Ask for a worker; it is there when ``workers`` lists it as healthy."""
        if worker_key:
            self._see_that_it_asks_for_a_key()
        body = {"url": worker, **({"api_key": worker_key} if worker_key else {})}
        status, text = self.send("POST", f"{self.url}/workers", self.key, body)
        if status not in (200, 202):
            raise self._refused(f"does not take {worker}", status, text)

    def remove(self, worker: Worker) -> None:
        status, text = self.send("DELETE", f"{self.url}/workers/{worker.id}", self.key, None)
        if status not in (200, 202, 404):
            raise self._refused(f"does not let {worker.url} go", status, text)

    def _see_that_it_asks_for_a_key(self) -> None:
        """Refuse to tell a router without a key of its own the server's: it would answer everybody in our name."""
        status, text = self.send("POST", f"{self.url}/v1/chat/completions", None, {})
        if status is None:
            raise self._refused("does not answer", status, text)
        if status != 401:
            raise InferopsError(
                f"the router takes requests without a key (status {status}), the server asks for one",
                where=self.url,
                why="a router that knows a worker's key sends it for every client that brings none",
                do="set sglang_router_api_key to the server's own key; the router hands it on as clients send it",
            )

    def _refused(self, what: str, status: int | None, text: str) -> InferopsError:
        known = {401: "it wants another key", None: text}
        return InferopsError(
            f"the router {what}",
            where=self.url,
            why=known.get(status) or f"status {status}: {text.strip()[:300]}",
            do="look at its journal (journalctl -u sglang-router) and at the keys on both sides",
        )


def ensure(
    router: RouterApi,
    worker: str,
    *,
    present: bool,
    worker_key: str | None = None,
    wait_s: float = 60.0,
    check: bool = False,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Make the router know a healthy worker, or not know it; return whether something changed. Waits until it is so."""
    worker = worker.rstrip("/")
    known = router.workers().get(worker)
    changed = (known is None) == present
    if check:
        return changed
    if changed and present:
        router.add(worker, worker_key)
    elif changed and known:
        router.remove(known)
    deadline = now() + wait_s
    while True:
        found = router.workers().get(worker)
        if (found is None) != present and (found is None or found.healthy):
            return changed
        if now() >= deadline:
            state = "not listed" if found is None else "healthy" if found.healthy else "listed, not healthy"
            raise InferopsError(
                f"{worker} is {state} after {wait_s:.0f} s",
                where=router.url,
                why="the router asks each worker for /health and /model_info before it takes it",
                do=f"curl {worker}/health from the router's host, and look at the router's journal",
            )
        sleep(POLL_S)
