# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Watches the cards beside the load: one reading per second in a thread, summarised for any stretch of the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from .nvml import UNHEALTHY, NoNvmlError, Nvml

PERIOD_S = 1.0
JOIN_S = 3.0
THROTTLED_SHARE = 0.05
Reading = dict[str, Any]


class GpuSampler:
    """Samples every card until closed. ``problem`` says why there is nothing to sample; then all summaries are empty."""

    def __init__(
        self,
        *,
        clock_ns: Callable[[], int],
        write: Callable[[Reading], None],
        open_nvml: Callable[[], Nvml] = Nvml,
        period_s: float = PERIOD_S,
    ) -> None:
        self._clock_ns, self._write, self._period_s = clock_ns, write, period_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._tp_size: int | None = None
        self._pp_size: int | None = None
        self._nvml: Nvml | None = None
        self.readings: list[Reading] = []
        self.identities: list[Reading] = []
        self.problem: str | None = None
        self.owners_at_start: dict[int, list[int]] | None = None
        try:
            self._nvml = open_nvml()
        except NoNvmlError as exc:
            self.problem = str(exc)
            return
        self.identities = [self._nvml.identity(index) for index in range(len(self._nvml.handles))]
        if not self.identities:
            self.problem = "NVML sees no card"
            return
        self.owners_at_start = self._nvml.processes()
        self._thread = threading.Thread(target=self._watch, name="gpu-sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sampling; a driver call that hangs is left behind after a few seconds."""
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
        if self._nvml is not None and (self._thread is None or not self._thread.is_alive()):
            self._nvml.close()

    def newcomers(self) -> list[int]:
        """Return ids of processes that compute on a card now and did not at the start, or share one from elsewhere."""
        now = self._nvml.processes() if self._nvml is not None and self.problem is None else None
        if now is None or self.owners_at_start is None:
            return []
        before = {pid for pids in self.owners_at_start.values() for pid in pids}
        present = {pid for pids in now.values() for pid in pids}
        groups = {pid: _control_group(pid) for pid in present}
        known = {group for group in groups.values() if group is not None}
        strangers = sorted(present - before)
        if len(known) > 1:
            counts = {group: sum(value == group for value in groups.values()) for group in known}
            main = max(counts, key=lambda group: counts[group])
            strangers = sorted({*strangers, *(pid for pid, group in groups.items() if group not in (None, main))})
        return strangers

    def place(self, tp_size: int | None, pp_size: int | None) -> None:
        """Tell the layout once the server has said it, so that cards can be named by stage."""
        self._tp_size, self._pp_size = tp_size, pp_size

    def summary(self, windows: Sequence[tuple[int, int]]) -> list[Reading]:
        """Return one entry per card over the readings that lie in any of the windows [ns]."""
        inside = [reading for reading in list(self.readings) if any(low <= reading["ns"] <= high for low, high in windows)]
        return [self._card(identity, [reading["gpus"][identity["index"]] for reading in inside]) for identity in self.identities]

    def _card(self, identity: Mapping[str, Any], readings: Sequence[Mapping[str, Any]]) -> Reading:
        power = _known(readings, "power_w")
        busy = _known(readings, "utilization_ratio")
        memory = _known(readings, "memory_mib")
        throttle = _known(readings, "throttle")
        unhealthy = [bool(UNHEALTHY.intersection(reasons)) for reasons in throttle]
        return {
            "uuid": identity["uuid"],
            "index": identity["index"],
            "stage": self._stage(identity["index"]),
            "name": identity["name"],
            "power_w": {
                "mean": round(fmean(power), 2) if power else None,
                "max": max(power) if power else None,
                "limit": identity["power_limit_w"],
            },
            "utilization_ratio": round(fmean(busy), 4) if busy else None,
            "memory_mib": max(memory) if memory else None,
            "throttle": sorted({reason for reasons in throttle for reason in reasons}),
            "throttled_ratio": round(fmean(unhealthy), 4) if unhealthy else None,
            "samples": len(readings),
        }

    def _stage(self, index: int) -> int | None:
        """Pipeline stage of a card: SGLang places rank pp_rank * tp_size + tp_rank on card number rank of one host."""
        if self._tp_size is None or self._pp_size is None or self._tp_size * self._pp_size != len(self.identities):
            return None
        return index // self._tp_size

    def _watch(self) -> None:
        nvml = self._nvml
        while nvml is not None and not self._stop.is_set():
            reading = {"ns": self._clock_ns(), "gpus": [nvml.reading(index) for index in range(len(nvml.handles))]}
            self.readings.append(reading)
            self._write(reading)
            self._stop.wait(self._period_s)


def throttled(cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one sentence per card that was slowed down by heat or power delivery in more than 5 % of its readings."""
    return [
        f"card {card['index']} was throttled in {card['throttled_ratio']:.0%} of the readings"
        f" ({', '.join(reason for reason in card['throttle'] if reason in UNHEALTHY)})"
        for card in cards
        if card["throttled_ratio"] is not None and card["throttled_ratio"] > THROTTLED_SHARE
    ]


def _known(readings: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    return [reading[key] for reading in readings if reading[key] is not None]


def _control_group(pid: int) -> str | None:
    """Control group of a process, None when it cannot be seen (another namespace, or gone)."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
