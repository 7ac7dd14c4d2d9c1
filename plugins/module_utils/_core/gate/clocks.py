# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether time went on evenly while we measured: steps of the wall clock, a suspended machine, a client that was not run."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

from ..units import NS_PER_S, ns_to_s

STEP_S = 0.5
ASLEEP_S = 0.5
STALLED_S = 3.0


def boot_ns() -> int | None:
    """Return the time since boot with suspended time in it (CLOCK_BOOTTIME), None where the system has no such clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime_ns(clock)


def wall_time() -> str:
    """Return the time of day for people, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class ClockWatch:
    """Asked some times a second; remembers what was uneven between two looks."""

    def __init__(
        self,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
        since_boot_ns: Callable[[], int | None] = boot_ns,
    ) -> None:
        self._monotonic_ns, self._wall_ns, self._since_boot_ns = monotonic_ns, wall_ns, since_boot_ns
        self._last: tuple[int, int, int | None] | None = None
        self._step_ns = self._asleep_ns = self._stalled_ns = 0

    def look(self) -> None:
        """Compare how far each clock went since the last look."""
        now, last = (self._monotonic_ns(), self._wall_ns(), self._since_boot_ns()), self._last
        self._last = now
        if last is None:
            return
        passed = now[0] - last[0]
        asleep = 0 if now[2] is None or last[2] is None else now[2] - last[2] - passed
        # While a machine sleeps its wall clock goes on: that is no step of its own.
        step = now[1] - last[1] - passed - asleep
        self._asleep_ns = max(self._asleep_ns, asleep)
        self._step_ns = max(self._step_ns, step, key=abs)
        self._stalled_ns = max(self._stalled_ns, passed)

    def doubts(self) -> list[str]:
        """Return one sentence for each thing that makes times untrustworthy."""
        found = []
        if abs(self._step_ns) > STEP_S * NS_PER_S:
            found.append(f"the wall clock was set by {ns_to_s(self._step_ns):+.1f} s during the run: times do not line up")
        if self._asleep_ns > ASLEEP_S * NS_PER_S:
            found.append(f"the machine was suspended for {ns_to_s(self._asleep_ns):.1f} s during the run")
        if self._stalled_ns > STALLED_S * NS_PER_S:
            found.append(
                f"the load client was not run for {ns_to_s(self._stalled_ns):.1f} s: stopped, or its machine is overloaded"
            )
        return found
