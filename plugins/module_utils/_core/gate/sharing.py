# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a card that telemetry calls busy is shared: a timed copy on it says so, never telemetry alone.

A card whose busy process was killed can go on to be called busy with nothing on it, and a process that only sits on a card
takes nothing from the server. So what looks shared is timed while the server has nothing to do: before the load and after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..topology.bandwidth import measure_apart, sustained
from .bound import READ_OVER_COPY
from .context import GateContext
from .gpu import Cards

Word = Literal["free", "shared", "unknown"]
BUSY_RATIO = 0.10
# NVML averages over up to a second: what the last question before us left behind is gone after this long.
SETTLES_S, LOOKS = 2.0, 8
# Below these shares of the yardstick a copy is slowed down. An edition's figure is a promise for reading (bound.py), and cards
# of one edition differ; two processes that both have work get half each.
OWN_SHARE, EDITION_SHARE = 0.85, 0.75 / READ_OVER_COPY
DEADLINE_S, PER_CARD_S = 15.0, 3.0
# Requests that were cut may be worked on for a moment: after this long, and once more, before a slow copy is believed.
PAUSE_S = 1.0
NEIGHBOURS = 2
LEFT = "a copy made now tells nothing of what it took then"


@dataclass(frozen=True)
class Sharing:
    """What one look found on one card."""

    word: Word
    seen: str
    copy_gb_s: float | None
    expected_gb_s: float | None
    against: str | None
    why: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as a card of the result tells it."""
        told = {"verdict": self.word, "seen": self.seen, "copy_gb_s": self.copy_gb_s}
        return {**told, "expected_gb_s": self.expected_gb_s, "against": self.against, "why": self.why}

    def sentence(self, card: str) -> str:
        speed = f"{self.copy_gb_s:.0f} of {self.expected_gb_s:.0f} GB/s, {self.against}" if self.expected_gb_s else ""
        if self.word == "free":
            return f"{card} is not shared: {self.seen}, but a timed copy is at full speed ({speed})"
        if self.word == "shared":
            return f"{card} is shared: {self.seen}, and a timed copy is slow ({speed})"
        return f"whether {card} is shared is unknown: {self.seen}, and {self.why}"


def judge(
    seen: str,
    copy_gb_s: float | None,
    *,
    earlier: float | None = None,
    neighbour: float | None = None,
    edition: float | None = None,
    problem: str = "",
) -> Sharing:
    """Judge a copy by what the card did earlier, else by like cards beside it, else by its edition; none of them: unknown.

    >>> judge("process 7 is on it", 1400.0, earlier=1500.0).word
    'free'
    """
    yardsticks = (
        (earlier, OWN_SHARE, "measured on it earlier"),
        (neighbour, OWN_SHARE, "measured on a like card beside it"),
        (edition, EDITION_SHARE, "promised by its edition"),
    )
    if copy_gb_s is None:
        return Sharing("unknown", seen, None, None, None, f"no copy could be timed: {problem or 'no answer'}")
    for figure, share, words in yardsticks:
        if figure:
            return Sharing("free" if copy_gb_s >= share * figure else "shared", seen, copy_gb_s, figure, words)
    return Sharing("unknown", seen, copy_gb_s, None, None, f"nothing tells whether {copy_gb_s:.0f} GB/s are its full speed")


def time_copies(uuids: Sequence[str]) -> dict[str, Any]:
    return measure_apart(uuids, deadline_s=DEADLINE_S + PER_CARD_S * len(uuids), work=sustained)


class SharedCards:
    """Looks at the cards before the load and after each point; ``doubts`` are what keeps the last point from passing."""

    def __init__(
        self,
        cards: Cards,
        note: Callable[[str], None],
        *,
        time_copies: Callable[[Sequence[str]], Mapping[str, Any]] = time_copies,
        pause_s: float = PAUSE_S,
        settles_s: float = SETTLES_S,
    ) -> None:
        self._cards, self._note, self._time = cards, note, time_copies
        self._pause_s, self._settles_s = pause_s, settles_s
        self._context = GateContext()
        self._before: dict[int, Sharing] = {}
        self._after: dict[int, Sharing] = {}
        """What the last two looks found: one lies before the last point, one after it."""
        self._said: set[str] = set()
        self._left: dict[int, Sharing] = {}
        """Cards on which something was between the two and is no more."""

    async def before(self, context: GateContext) -> None:
        """Look before any load: processes of others, and cards that are busy with nothing to do."""
        self._context = context
        self._cards.place(context.tp_size, context.pp_size)
        if self._cards.problem is not None:
            self._note(f"cards were not observed: {self._cards.problem}")
        busy = await self._busy()
        look = await self._look({index: f"it is {100 * ratio:.0f} % busy before any load" for index, ratio in busy.items()})
        self._cards.latched = {index for index in busy if look[index].word == "free"}
        for index in sorted(self._cards.latched):
            self._note(f"the busy share of {self._cards.name(index)} is not to be believed and left out")

    async def after(self) -> None:
        """Look once a point has ended: processes of others, and again at what was not found free."""
        for text in self._cards.silence():
            self._note_once(text)
        await self._look({})

    def doubts(self) -> list[str]:
        """Say which cards were not the server's alone before or after the last point, or may not have been."""
        both = [*self._before.items(), *self._after.items(), *self._left.items()]
        return list(dict.fromkeys(each.sentence(self._cards.name(index)) for index, each in both if each.word != "free"))

    async def _busy(self) -> dict[int, float]:
        """Return the cards that stay busy although no load is on, with the least share seen."""
        least: dict[int, float] = {}
        for turn in range(LOOKS):
            now = {index: ratio for index, ratio in enumerate(self._cards.busy_now) if ratio is not None and ratio >= BUSY_RATIO}
            least = {index: min(ratio, least.get(index, ratio)) for index, ratio in now.items() if turn == 0 or index in least}
            if not least:
                break
            await asyncio.sleep(self._settles_s / LOOKS)
        return least

    async def _look(self, busy: Mapping[int, str]) -> dict[int, Sharing]:
        again = {index: each.seen for index, each in self._after.items() if each.word != "free"}
        suspects, left = {**again, **busy}, set()
        for index, pids in self._cards.strangers().items():
            words = [busy[index]] if index in busy else []
            words += [f"process {pid} of others {'is' if present else 'was'} on it" for pid, present in pids.items()]
            suspects[index] = " and ".join(words)
            left |= set() if all(pids.values()) else {index}
        self._cards.forget()
        look = await self._timed(suspects)
        self._before, self._after = self._after, look
        self._left = {index: replace(look[index], word="unknown", why=LEFT) for index in left if look[index].word == "free"}
        for index, each in sorted({**look, **self._left}.items()):
            self._cards.sharing[index] = each.as_dict()
            if each.word == "free":
                self._note_once(each.sentence(self._cards.name(index)), about=f"{index} {each.seen}")
        return look

    def _note_once(self, text: str, *, about: str | None = None) -> None:
        if (about or text) not in self._said:
            self._said.add(about or text)
            self._note(text)

    async def _timed(self, suspects: Mapping[int, str]) -> dict[int, Sharing]:
        """Time copies on these cards and on like ones beside them; once more where a card seems slow."""
        found: dict[int, Sharing] = {}
        for dummy in range(2):
            slow = [index for index in suspects if index not in found or found[index].word == "shared"]
            if not slow:
                break
            await asyncio.sleep(self._pause_s)
            beside = {index: self._like(index, suspects) for index in slow}
            wanted = sorted({*slow, *(other for others in beside.values() for other in others)})
            told = await self._copies(wanted)
            for index in slow:
                near = [told["gb_s"][other] for other in beside[index] if other in told["gb_s"]]
                found[index] = judge(
                    suspects[index],
                    told["gb_s"].get(index),
                    earlier=self._earlier(index),
                    neighbour=max(near, default=None),
                    edition=self._context.bandwidth_gb_s,
                    problem="; ".join(told["problems"]),
                )
        return found

    async def _copies(self, indices: Sequence[int]) -> dict[str, Any]:
        places = {str(self._cards.identities[index]["uuid"]): index for index in indices}
        self._cards.copying = True
        try:
            told = await asyncio.to_thread(self._time, list(places))
        finally:
            self._cards.copying = False
        return {"gb_s": {places[uuid]: value for uuid, value in told["gb_s"].items()}, "problems": told["problems"]}

    def _like(self, index: int, suspects: Collection[int]) -> list[int]:
        """Return cards of the same kind of which nothing is suspected, unless the card's own figure is known."""
        if self._earlier(index) is not None:
            return []
        name = self._cards.identities[index]["name"]
        same = [each["index"] for each in self._cards.identities if each["name"] == name and each["index"] not in suspects]
        return same[:NEIGHBOURS]

    def _earlier(self, index: int) -> float | None:
        """Return what was measured on a card before, where that is known for every card (gpu_info: in the order of NVML)."""
        known = self._context.bandwidths_gb_s
        return known[index] if known and len(known) == len(self._cards.identities) else None
