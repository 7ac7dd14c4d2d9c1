# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cards beside the load: what they are, read again and again, summarised for any stretch of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .card_words import held_back_where
from .folded import Folded, Over
from .nvml import THROTTLE_BITS, UNHEALTHY, NoNvmlError, Nvml

THROTTLED_SHARE = 0.05
# What changes seldom, processes, and the PCIe traffic of one card in turn: every so many readings.
SLOW_EVERY = 5
# Xid 79: the card has fallen off the bus. 154: the driver asks for a reset or a reboot of the node (NVIDIA Xid catalogue).
DEADLY_XIDS = {79: "the card has fallen off the bus", 154: "the driver says that the card must be reset or the machine restarted"}
MOST_XIDS = 16
# A driver that answers slowly is asked after four times as long (watch.py): this is no longer slow.
HANGS_S = 15.0
Reading = dict[str, Any]


class Cards:
    """All cards of this host. ``problem`` says why there are none; then all summaries are empty."""

    def __init__(self, open_nvml: Callable[[], Nvml] = Nvml, control_group: Callable[[int], str | None] | None = None) -> None:
        self._control_group = _control_group if control_group is None else control_group
        self._tp_size: int | None = None
        self._pp_size: int | None = None
        self._nvml: Nvml | None = None
        self._turn = 0
        self._seen: dict[int, set[int]] = {}
        self._folded: list[Folded] = []
        self.identities: list[Reading] = []
        self.problem: str | None = None
        self.owners_at_start: dict[int, list[int]] | None = None
        self.p2p_refused: list[tuple[int, int]] | None = None
        self._owners: dict[int, list[int]] | None = None
        self._silent: dict[int, int] = {}
        self._listened_to: list[int] = []
        self._read_s = time.monotonic()
        self.busy_now: list[float | None] = []
        """Busy share of every card at the last reading. A driver call that hangs holds up the readings alone, nobody else."""
        self.copying = False
        """Whether copies of ours are being timed: processes are then not looked for."""
        self.latched: set[int] = set()
        """Cards whose busy share is not to be believed: high without any work."""
        self.sharing: dict[int, Reading] = {}
        """What a timed copy said of the cards that looked shared."""
        self.xids: list[Reading] = []
        """The first Xid errors of the run; a flood of them says no more than its beginning."""
        try:
            self._nvml = open_nvml()
        except NoNvmlError as exc:
            self.problem = str(exc)
            return
        self.identities = [self._nvml.identity(index) for index in range(len(self._nvml.handles))]
        if not self.identities:
            self.problem = "NVML sees no card"
            return
        self._folded = [Folded() for dummy in self.identities]
        self.owners_at_start = self._owners = self._nvml.processes()
        self.busy_now = [self._nvml.reading(index)["utilization_ratio"] for index in range(len(self.identities))]
        self.p2p_refused = self._nvml.p2p_refused()
        self._listened_to = self._nvml.listen()

    def close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()

    def read(self, ns: int) -> list[Reading]:
        """Read every card once."""
        nvml = self._nvml
        if nvml is None or self.problem is not None:
            return []
        self._turn, slow = self._turn + 1, self._turn % SLOW_EVERY == 0
        readings = []
        for index, folded in enumerate(self._folded):
            reading = nvml.reading(index)
            if slow:
                reading |= nvml.slow_reading(index)
            if self._turn % SLOW_EVERY == 2 and self._turn // SLOW_EVERY % len(self._folded) == index:
                reading |= nvml.traffic(index)
            numbers = _numbers(reading)
            folded.add(ns, numbers)
            readings.append(reading)
            if any(value is not None for name, value in numbers.items() if name != "index"):
                self._silent.pop(index, None)
            else:
                self._silent.setdefault(index, ns)
        self.busy_now, self._read_s = [reading["utilization_ratio"] for reading in readings], time.monotonic()
        if slow and not self.copying:
            owners = nvml.processes()
            # Our own copies are processes on the cards as well, and may have begun meanwhile.
            if not self.copying:
                self._owners = owners
                for index, pids in (owners or {}).items():
                    self._seen.setdefault(index, set()).update(pids)
        for card, xid in nvml.xids():
            # A flood of what can be survived must not hide the one that cannot.
            known = any((card, xid) == (each["index"], each["xid"]) for each in self.xids)
            if len(self.xids) < MOST_XIDS or (xid in DEADLY_XIDS and not known):
                self.xids.append({"ns": ns, "index": card, "xid": xid})
        return readings

    def strangers(self) -> dict[int, dict[int, bool]]:
        """Return card -> {process id: still there} of those that came since the start, or are of another control group.

        A card on which the server computes not at all, as far as that can be told, is not the server's: what runs there is no
        stranger. Empty where the driver does not tell who computes.
        """
        now = self._owners
        if now is None or self.owners_at_start is None:
            return {}
        before = {pid for pids in self.owners_at_start.values() for pid in pids}
        on_card = {index: {*pids, *self._seen.get(index, ())} for index, pids in now.items()}
        groups = {pid: self._control_group(pid) for pid in set().union(*on_card.values())}
        known = [group for group in groups.values() if group is not None]
        main = max(known, key=known.count, default=None)
        ours = [index for index, pids in on_card.items() if main is not None and any(groups[pid] == main for pid in pids)]
        if ours and len(ours) == (self._tp_size or 0) * (self._pp_size or 0):
            on_card = {index: on_card[index] for index in ours}
        found = {
            index: {pid: pid in now[index] for pid in sorted(pids) if pid not in before or groups[pid] not in (None, main)}
            for index, pids in on_card.items()
        }
        return {index: pids for index, pids in found.items() if pids}

    def forget(self) -> None:
        """Forget which processes were seen until now; those that are still there are found again."""
        self._seen.clear()

    def silence(self) -> list[str]:
        """Return one sentence per card that answered no more when it was asked last, one for all where no answer came at all."""
        if self.identities and time.monotonic() - self._read_s > HANGS_S:
            return ["the driver no longer answers: what the cards do is unknown since then"]
        return [f"{self.name(index)} no longer answers: what it does is unknown since then" for index in sorted(self._silent)]

    def place(self, tp_size: int | None, pp_size: int | None) -> None:
        """Tell the layout once the server has said it, so that cards can be named by stage."""
        self._tp_size, self._pp_size = tp_size, pp_size

    def summary(self, windows: Sequence[tuple[int, int]]) -> list[Reading]:
        """Return one entry per card over the readings that lie in any of the windows [ns]."""
        pairs = zip(self.identities, self._folded, strict=True)
        return [self._card(identity, folded.over(windows)) for identity, folded in pairs]

    def busy(self, windows: Sequence[tuple[int, int]]) -> list[float | None]:
        """Return the busy share of every card, as telemetry tells it."""
        return [
            None if index in self.latched else folded.over(windows).mean("utilization_ratio")
            for index, folded in enumerate(self._folded)
        ]

    def deadly(self) -> list[str]:
        """Return one sentence per card that an Xid error has taken away."""
        cards = {(each["index"], each["xid"]) for each in self.xids if each["xid"] in DEADLY_XIDS}
        return [
            f"host unhealthy: Xid {xid} on {self.name(index)}: {DEADLY_XIDS[xid]}"
            for index, xid in sorted(cards, key=lambda pair: (pair[1], -1 if pair[0] is None else pair[0]))
        ]

    def name(self, index: int | None) -> str:
        """Return a card as people find it again: number, UUID, stage."""
        if index is None or not 0 <= index < len(self.identities):
            return "a card that the driver does not name"
        stage = self._stage(index)
        uuid = self.identities[index]["uuid"]
        return f"card {index} ({', '.join(filter(None, [uuid, None if stage is None else f'stage {stage}']))})"

    def _card(self, identity: Mapping[str, Any], seen: Over) -> Reading:
        def mean(name: str, digits: int = 4) -> float | None:
            value = seen.mean(name)
            return None if value is None else round(value, digits)

        def whole(name: str) -> int | None:
            value = seen.most(name)
            return None if value is None else round(value)

        index = identity["index"]
        width = seen.stats.get("pcie_width")
        known = any(f"throttle:{name}" in seen.stats for name in THROTTLE_BITS.values())
        return {
            "uuid": identity["uuid"],
            "index": index,
            "stage": self._stage(index),
            "name": identity["name"],
            "power_w": {"mean": mean("power_w", 2), "max": seen.most("power_w"), "limit": identity["power_limit_w"]},
            "utilization_ratio": None if index in self.latched else mean("utilization_ratio"),
            "memory_busy_ratio": mean("memory_busy_ratio"),
            "memory_mib": whole("memory_mib"),
            "sm_clock_mhz": {"mean": mean("sm_clock_mhz", 0), "max": identity["sm_clock_max_mhz"]},
            "memory_clock_mhz": {"mean": mean("memory_clock_mhz", 0), "max": identity["memory_clock_max_mhz"]},
            "temperature_celsius": whole("temperature_celsius"),
            "pcie": {
                "tx_bytes_per_s": mean("pcie_tx_bytes_per_s", 0),
                "rx_bytes_per_s": mean("pcie_rx_bytes_per_s", 0),
                "width": None if width is None else round(width.least),
                "width_max": identity["pcie_width_max"],
            },
            "ecc_errors": seen.gain("ecc_errors"),
            "xid": [each["xid"] for each in self.xids if each["index"] == index] if index in self._listened_to else None,
            "p2p_refused": None
            if self.p2p_refused is None
            else [other for pair in self.p2p_refused if index in pair for other in pair if other != index],
            "throttle": sorted(name for name in THROTTLE_BITS.values() if (seen.most(f"throttle:{name}") or 0) > 0),
            "throttled_ratio": mean("throttled") if known else None,
            "sharing": self.sharing.get(index),
            "samples": seen.readings,
        }

    def _stage(self, index: int) -> int | None:
        """Pipeline stage of a card: SGLang places rank pp_rank * tp_size + tp_rank on card number rank of one host."""
        if self._tp_size is None or self._pp_size is None or self._tp_size * self._pp_size != len(self.identities):
            return None
        return index // self._tp_size


def throttled(cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what slowed cards down, heat or power delivery, in more than 5 % of their readings, and which cards."""
    shares = {place: card["throttled_ratio"] for place, card in enumerate(cards) if card["throttled_ratio"] is not None}
    slowed = {
        place: [reason for reason in cards[place]["throttle"] if reason in UNHEALTHY]
        for place, share in shares.items()
        if share > THROTTLED_SHARE
    }
    return [
        f"clocks were held back {words}, in up to {100 * max(shares[place] for place in places):.0f} % of the readings"
        for words, places in held_back_where(slowed, cards).items()
    ]


def _numbers(reading: Mapping[str, Any]) -> dict[str, float | None]:
    """Return a reading as numbers: reasons of held-back clocks become shares of the readings that name them."""
    numbers = {name: value for name, value in reading.items() if name not in ("index", "throttle")}
    reasons = reading["throttle"]
    if reasons is not None:
        numbers |= {f"throttle:{name}": float(name in reasons) for name in THROTTLE_BITS.values()}
        numbers["throttled"] = float(bool(UNHEALTHY.intersection(reasons)))
    return numbers


def _control_group(pid: int) -> str | None:
    """Control group of a process, None when it cannot be seen (another namespace, or gone)."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
