# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Watches cards and host beside the load, five times a second in a thread of its own; memory does not grow with the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .folded import Folded, Over
from .gpu import Cards
from .host import HostWatch

PERIOD_S = 0.2
# A driver that answers slowly is asked less often: of the time, readings take a fifth at most.
PAUSE_PER_WORK = 4
JOIN_S = 3.0


class Watch:
    """Reads until closed and writes one line {"ns", "gpus", "host"} per reading; what is not there is left out of it."""

    def __init__(
        self,
        cards: Cards,
        host: HostWatch,
        *,
        clock_ns: Callable[[], int],
        write: Callable[[Mapping[str, Any]], None],
        period_s: float = PERIOD_S,
    ) -> None:
        self.cards = cards
        self._host, self._clock_ns, self._write, self._period_s = host, clock_ns, write, period_s
        self._of_host = Folded()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; a driver call that hangs is left behind after a few seconds."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(JOIN_S)
        if not self._thread.is_alive():
            self.cards.close()

    def host(self, windows: Sequence[tuple[int, int]]) -> Over:
        """Return what the host did in the windows [ns]."""
        return self._of_host.over(windows)

    def _watch(self) -> None:
        while not self._stop.is_set():
            began = self._clock_ns()
            host, gpus = self._host.read(), self.cards.read(began)
            self._of_host.add(began, host)
            known = {name: value for name, value in host.items() if value is not None}
            self._write({"ns": began, **({"gpus": gpus} if gpus else {}), **({"host": known} if known else {})})
            spent = (self._clock_ns() - began) / 1e9
            self._stop.wait(max(self._period_s - spent, PAUSE_PER_WORK * spent))
