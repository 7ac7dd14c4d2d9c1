# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keep one server in the lists of its routers until told to stop, then take it out of them.

A router holds its list in memory and forgets it with each start, so whoever wants to be in it looks again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import InferopsError
from .api import RouterApi, ensure

LOOK_S = 2.0
# A router that was asked needs a moment; one that was started again in that moment knows nothing of it.
ASK_AGAIN_S = 5.0
LEAVE_S = 10.0


class Notices(Protocol):
    """What systemd is told; see Notifier."""

    def ready(self, text: str) -> None: ...

    def status(self, text: str) -> None: ...

    def stopping(self, text: str) -> None: ...


@dataclass
class Enrolment:
    """One server and its routers; ``say`` gets what changes, for the journal."""

    routers: tuple[RouterApi, ...]
    worker: str
    worker_key: str | None
    say: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    asked: dict[str, float] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def look(self) -> dict[str, str]:
        """Ask each router once, and for a place where there is none; return how each stands."""
        found = {router.url: self._one(router) for router in self.routers}
        for url, state in found.items():
            if self.told.get(url) != state:
                self.say(f"{url}: {state}")
        self.told = found
        return found

    def _one(self, router: RouterApi) -> str:
        try:
            known = router.workers().get(self.worker)
            if known is not None:
                self.asked.pop(router.url, None)
                return "enrolled" if known.healthy else "listed, not healthy"
            if self.now() - self.asked.get(router.url, -ASK_AGAIN_S) >= ASK_AGAIN_S:
                router.add(self.worker, self.worker_key)
                self.asked[router.url] = self.now()
            return "asked"
        except InferopsError as exc:
            self.asked.pop(router.url, None)
            return f"{exc.what}: {exc.why}"

    def leave(self) -> dict[str, str]:
        """Take the server out of every list; return the routers that still may send clients, with why."""
        stays = {}
        for router in self.routers:
            try:
                ensure(router, self.worker, present=False, wait_s=LEAVE_S)
                self.say(f"{router.url}: left")
            except InferopsError as exc:
                stays[router.url] = f"{exc.what}: {exc.why}"
                self.say(f"{router.url}: not left: {stays[router.url]}")
        return stays


def summary(found: Mapping[str, str]) -> str:
    """Return one line for people.

    >>> summary({"http://a:1": "enrolled", "http://b:1": "asked"})
    'enrolled with 1 of 2 routers; http://b:1 asked'
    """
    good = [url for url, state in found.items() if state == "enrolled"]
    rest = "; ".join(f"{url} {state}" for url, state in found.items() if state != "enrolled")
    return f"enrolled with {len(good)} of {len(found)} routers" + (f"; {rest}" if rest else "")


def keep(enrolment: Enrolment, notices: Notices, wait: Callable[[float], bool]) -> None:
    """Keep the server enrolled until ``wait`` returns true; ready, once, when the first router lists it as healthy."""
    ready = False
    while True:
        found = enrolment.look()
        text = summary(found)
        if not ready and "enrolled" in found.values():
            ready = True
            notices.ready(text)
        else:
            notices.status(text)
        if wait(LOOK_S if ready else LOOK_S / 4):
            break
    notices.stopping("leaving the routers")
    enrolment.leave()
