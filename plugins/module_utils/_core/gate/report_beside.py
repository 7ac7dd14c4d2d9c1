# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Readings beside the load (cards, host), thinned to what a chart can show; the highest value is kept beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..units import NS_PER_S
from .report_format import mapping, mappings, number

DRAWN = 160


@dataclass
class CardSeries:
    """One card over the run: seconds since the run began, power and busy share (None where not read)."""

    index: int
    seconds: list[float] = field(default_factory=list)
    power_w: list[float | None] = field(default_factory=list)
    utilization_ratio: list[float | None] = field(default_factory=list)
    peak_w: float | None = None


@dataclass
class HostSeries:
    """The machine the client runs on, over the run: shares from 0 to 1."""

    seconds: list[float] = field(default_factory=list)
    shares: dict[str, list[float | None]] = field(default_factory=dict)


SHARES = ("cpu_ratio", "busiest_core_ratio", "client_cpu_ratio", "link_ratio")


class Beside:
    """Collects readings as they lie in a result folder, newest or older form."""

    def __init__(self) -> None:
        self._cards: dict[int, CardSeries] = {}
        self._host = HostSeries(shares={name: [] for name in SHARES})

    def add(self, row: Mapping[str, Any]) -> None:
        nanoseconds = number(row.get("ns"))
        if nanoseconds is None or not 0 <= nanoseconds < 1e17:
            return
        second = nanoseconds / NS_PER_S
        for gpu in mappings(row.get("gpus")):
            index = gpu.get("index")
            if not isinstance(index, int):
                continue
            card = self._cards.setdefault(index, CardSeries(index))
            card.seconds.append(second)
            card.power_w.append(number(gpu.get("power_w")))
            card.utilization_ratio.append(number(gpu.get("utilization_ratio")))
        host = mapping(row.get("host"))
        if host:
            self._host.seconds.append(second)
            for name, values in self._host.shares.items():
                values.append(number(host.get(name)))

    def cards(self) -> list[CardSeries]:
        return [
            CardSeries(
                index,
                _means(card.seconds, len(card.seconds)),
                _thinned(card.power_w, len(card.seconds)),
                _thinned(card.utilization_ratio, len(card.seconds)),
                max((value for value in card.power_w if value is not None), default=None),
            )
            for index, card in sorted(self._cards.items())
        ]

    def host(self) -> HostSeries:
        count = len(self._host.seconds)
        shares = {name: _thinned(values, count) for name, values in self._host.shares.items()}
        known = {name: values for name, values in shares.items() if any(value is not None for value in values)}
        return HostSeries(_means(self._host.seconds, count), known)


def _groups(values: Sequence[Any], count: int) -> list[Sequence[Any]]:
    step = max(1, -(-count // DRAWN))
    return [values[place : place + step] for place in range(0, count, step)]


def _means(values: Sequence[float], count: int) -> list[float]:
    return [fmean(group) for group in _groups(values, count)]


def _thinned(values: Sequence[float | None], count: int) -> list[float | None]:
    groups = ([value for value in group if value is not None] for group in _groups(values, count))
    return [fmean(group) if group else None for group in groups]
