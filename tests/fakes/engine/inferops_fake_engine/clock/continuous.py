"""A second scheduler with other laws, to try on what was tuned to the first: nothing here is fitted to anything.

- A new request goes into the slot that is visited next; ``cohorted`` fills it up to the limit, else the limit is the even share.
- Balance is kept while running: a slot that holds more than the even share hands requests to the emptiest one after a pass.
- Prompts are read in the same pass in which the others decode (mixed batches).
- CPU occupancy has a fixed part and grows with the root of the batch; nothing of it is ever hidden.
"""

from __future__ import annotations

import math

from .pipeline import Pipeline, _Request, _Slot
from .stages import Stage


class Continuous(Pipeline):
    """The same requests, stages and events as Pipeline, under other rules."""

    def _even_share(self) -> int:
        return max(1, math.ceil((self.running + len(self._waiting)) / len(self._slots)))

    def _choose_slot(self) -> int | None:
        limit = self._max_micro_batch if self._cohorted else min(self._max_micro_batch, self._even_share())
        count = len(self._slots)
        for step in range(count):
            index = (self._next_slot - 1 + step if self._cohorted else self._next_slot + step) % count
            if self._slots[index].load < limit:
                return index
        return None

    def _work(self, slot: _Slot, model: Stage) -> tuple[int, float, float]:
        batch = len(slot.running) + len(slot.prefill)
        reading = model.prefill_ms(sum(r.prompt_tokens for r in slot.prefill)) if slot.prefill else 0.0
        decoding = model.decode_ms(len(slot.running)) if slot.running else 0.0
        memory = model.memory_ms(len(slot.running)) if slot.running else 0.0
        return max(1, batch), reading + decoding, reading + memory

    def _count(self, slot: _Slot) -> list[_Request]:
        mixed = list(slot.running) if slot.prefill else []
        return super()._count(slot) + mixed

    def _occupancy_ms(self, batch: int) -> float:
        return 0.0 if len(self._stages) == 1 else self._p.occupancy_ms * (0.6 + 0.4 * math.sqrt(batch))

    def _begin_pass(self, index: int) -> None:
        if not self._cohorted and not self._slots[index].busy:
            self._hand_over(self._slots[index])
        super()._begin_pass(index)

    def _hand_over(self, slot: _Slot) -> None:
        """Give what is above the even share to slots that stand still."""
        spare = slot.load - self._even_share()
        for index, other in enumerate(self._slots):
            if spare <= 0:
                return
            if other is not slot and not other.busy and other.load == 0 and len(slot.running) > 1:
                other.running.append(slot.running.pop())
                spare -= 1
                self._begin_pass(index)
