"""Discrete-event model of a pipelined decoder: micro-batches in slots move through stages, one pass gives one token each.

The rules, and which of them are assumptions:

- There are ``pp_size + pp_async_batch_depth`` slots (SGLang, scheduler_pp_mixin).  A request joins the slot with the
  fewest requests and stays there until it ends: a cohort persists (assumed; SGLang fills the slot it is visiting, so
  requests that arrive together may share one: that is the behaviour ``cohorted``).
- A slot makes one pass at a time: a prefill pass for requests that have just joined, else a decode pass for the rest.
- After handing a pass on, a stage stays occupied by CPU work for each request of it.  A lone stream never waits for
  that, since the stage is free again long before the next token; a filled pipeline does.
- A request holds its context in the KV pool.  One that would not fit waits; when decoding overflows the pool, the youngest
  request of the micro-batch goes back to the head of the queue and its context is read again (a retraction).
- Occupancy is hidden in part once more micro-batches are in flight than there are stages (assumed linear): there is
  then always one whose GPU work overlaps the other's CPU work.  So depth acts through slots alone.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from .faults import NO_FAULTS, Faults
from .parameters import Parameters
from .stages import Stage


@dataclass(frozen=True)
class PrefillDone:
    """The prompt has been read; the first token is out."""

    at_ms: float
    request: Hashable


@dataclass(frozen=True)
class TokenDone:
    """One decode pass gave one more token."""

    at_ms: float
    request: Hashable
    last: bool


@dataclass(eq=False)
class _Request:
    key: Hashable
    prompt_tokens: int
    remaining: int
    waits_since_ms: float
    made: int = 0

    @property
    def context(self) -> int:
        return self.prompt_tokens + self.made


@dataclass
class _Slot:
    joining: list[_Request] = field(default_factory=list)
    running: list[_Request] = field(default_factory=list)
    prefill: list[_Request] = field(default_factory=list)  # of the pass now under way
    busy: bool = False

    @property
    def load(self) -> int:
        return len(self.joining) + len(self.running) + len(self.prefill)


class Pipeline:
    """Feed it with submit() and cancel(), drive it with advance(); it never looks at a wall clock and draws no chance."""

    def __init__(
        self,
        stages: tuple[Stage, ...],
        *,
        async_depth: int,
        parameters: Parameters,
        max_running: int = 2048,
        max_micro_batch: int | None = None,
        chunked_prefill: int = 8192,
        cohorted: bool = False,
        faults: Faults = NO_FAULTS,
    ) -> None:
        self._faults = faults
        self._compiles = list(faults.compile_after)
        self._stages = stages
        self._p = parameters
        self._slots = [_Slot() for dummy in range(len(stages) + max(0, async_depth))]
        self._max_running = max_running
        self._max_micro_batch = max_micro_batch or max(1, max_running // len(stages))
        self._chunk = chunked_prefill if chunked_prefill > 0 else 1 << 30
        self._cohorted = cohorted
        self._waiting: deque[_Request] = deque()
        self._events: list[tuple[float, int, str, int, int]] = []
        self._queues: list[deque[int]] = [deque() for dummy in stages]
        self._stage_busy = [False] * len(stages)
        self._sequence = 0
        self._next_slot = 0
        self.now_ms = 0.0
        self.memory_ms = [0.0] * len(stages)
        self.compute_ms = [0.0] * len(stages)
        self.throttle = [1.0] * len(stages)  # factor on every pass, may change while it runs
        self.graph_passes = 0
        self.eager_passes = 0
        self.prefill_passes = 0
        self.host_ms = [0.0] * len(stages)  # CPU work that held the stage after its passes
        self.forward_ms = [0.0] * len(stages)  # passes as the scheduler sees them
        self.compile_ms = 0.0
        self.retracted = 0
        self.admitted = 0
        self.queued_ms = 0.0  # what the admitted ones have waited for a place

    # ------------------------------------------------------------------ outside
    @property
    def running(self) -> int:
        return sum(slot.load for slot in self._slots)

    @property
    def queued(self) -> int:
        return len(self._waiting)

    @property
    def kv_used(self) -> int:
        """Tokens in the KV pool."""
        return sum(r.context for slot in self._slots for part in (slot.joining, slot.running, slot.prefill) for r in part)

    @property
    def in_flight(self) -> int:
        """Micro-batches that hold at least one request."""
        return sum(1 for slot in self._slots if slot.load)

    @property
    def cohort_sizes(self) -> tuple[int, ...]:
        return tuple(slot.load for slot in self._slots)

    def submit(self, at_ms: float, key: Hashable, *, prompt_tokens: int, output_tokens: int) -> None:
        """Take a request in; call advance(at_ms) first so that nothing earlier is still pending."""
        if at_ms < self.now_ms:
            raise ValueError(f"submitted at {at_ms} ms, but the clock is already at {self.now_ms} ms")
        if output_tokens < 1 or prompt_tokens < 0:
            raise ValueError("a request has at least one output token and no negative prompt")
        self.now_ms = at_ms
        self._waiting.append(_Request(key, prompt_tokens, output_tokens, at_ms))
        self._admit()

    def cancel(self, key: Hashable) -> None:
        """Forget a request whose client went away; its pass under way still ends."""
        self._waiting = deque(r for r in self._waiting if r.key != key)
        for slot in self._slots:
            for name in ("joining", "running", "prefill"):
                setattr(slot, name, [r for r in getattr(slot, name) if r.key != key])
        self._admit()

    def next_ms(self) -> float | None:
        return self._events[0][0] if self._events else None

    def advance(self, until_ms: float) -> Iterator[PrefillDone | TokenDone]:
        """Play everything up to and including ``until_ms``, in order."""
        while self._events and self._events[0][0] <= until_ms:
            at, dummy, kind, stage, slot = heapq.heappop(self._events)
            self.now_ms = at
            if kind == "free":
                self._stage_busy[stage] = False
                self._start(stage)
            elif kind == "arrive":
                self._queues[stage].append(slot)
                self._start(stage)
            else:
                yield from self._finish(self._slots[slot], slot)
        self.now_ms = max(self.now_ms, until_ms)

    # ------------------------------------------------------------------ inside
    def _push(self, at: float, kind: str, stage: int, slot: int) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (at, self._sequence, kind, stage, slot))

    def _choose_slot(self) -> int | None:
        room = [i for i, slot in enumerate(self._slots) if slot.load < self._max_micro_batch]
        if not room:
            return None
        if self._cohorted:
            return max(room, key=lambda i: (self._slots[i].load, -i))
        count = len(self._slots)
        return min(room, key=lambda i: (self._slots[i].load, (i - self._next_slot) % count))

    def _admit(self) -> None:
        while self._waiting and self.running < self._max_running and self._fits(self._waiting[0]):
            index = self._choose_slot()
            if index is None:
                return
            request = self._waiting.popleft()
            self.admitted += 1
            self.queued_ms += self.now_ms - request.waits_since_ms
            self._slots[index].joining.append(request)
            self._next_slot = (index + 1) % len(self._slots)
            self._begin_pass(index)

    def _fits(self, request: _Request) -> bool:
        pool = self._faults.kv_tokens
        return pool is None or not self.running or self.kv_used + request.context < pool

    def _count(self, slot: _Slot) -> list[_Request]:
        """Count the pass that has just ended; return the requests that got a token from it."""
        if slot.prefill:
            self.prefill_passes += 1
            return list(slot.prefill)
        if slot.running and len(slot.running) <= self._stages[0].graph_max_batch:
            self.graph_passes += 1
        elif slot.running:
            self.eager_passes += 1
        return list(slot.running)

    def _retract(self, slot: _Slot) -> None:
        """Send the youngest of a micro-batch back while the pool is overfull; its context must be read again."""
        pool = self._faults.kv_tokens
        while pool is not None and self.kv_used > pool and len(slot.running) > 1:
            victim = slot.running.pop()
            self.retracted += 1
            self._waiting.appendleft(_Request(victim.key, victim.context, victim.remaining, self.now_ms))

    def _begin_pass(self, index: int) -> None:
        """Queue the slot at the first stage, unless a pass is under way or nothing is there to do."""
        slot = self._slots[index]
        if slot.busy or not (slot.joining or slot.running):
            return
        if slot.joining:
            tokens = 0
            while slot.joining and (not slot.prefill or tokens + slot.joining[0].prompt_tokens <= self._chunk):
                request = slot.joining.pop(0)
                tokens += request.prompt_tokens
                slot.prefill.append(request)
        slot.busy = True
        self._push(self.now_ms, "arrive", 0, index)

    def _start(self, stage: int) -> None:
        if self._stage_busy[stage] or not self._queues[stage]:
            return
        index = self._queues[stage].popleft()
        slot, model = self._slots[index], self._stages[stage]
        batch, cost, memory = self._work(slot, model)
        cost *= self.throttle[stage]
        self.compute_ms[stage] += cost
        self.memory_ms[stage] += memory
        self._stage_busy[stage] = True
        done = self.now_ms + cost + self._compile_ms(stage)
        occupied = self._occupancy_ms(batch)
        self.host_ms[stage] += occupied
        self.forward_ms[stage] += done - self.now_ms
        self._push(done + occupied, "free", stage, index)
        hop = self._p.hop_ms + self._faults.slow_hops.get(stage, 0.0) if len(self._stages) > 1 else 0.0
        if stage + 1 < len(self._stages):
            self._push(done + hop, "arrive", stage + 1, index)
        else:
            self._push(done + hop, "finish", stage, index)

    def _work(self, slot: _Slot, model: Stage) -> tuple[int, float, float]:
        """Requests of a pass, its time on a stage, and the part of it in which memory streams [ms]."""
        if slot.prefill:
            cost = model.prefill_ms(sum(r.prompt_tokens for r in slot.prefill))
            return len(slot.prefill), cost, cost
        batch = max(1, len(slot.running))
        return batch, model.decode_ms(batch), model.memory_ms(batch)

    def _compile_ms(self, stage: int) -> float:
        """Time for which this pass waits for a kernel that was not compiled yet; the cards idle, the CPUs work."""
        if stage or not self._compiles or self.admitted < self._compiles[0]:
            return 0.0
        self._compiles.pop(0)
        self.compile_ms += self._faults.compile_ms
        return self._faults.compile_ms

    def _occupancy_ms(self, batch: int) -> float:
        stages = len(self._stages)
        if stages == 1:
            return 0.0
        overlap = min(1.0, max(0, self.in_flight - stages) / stages)
        return batch * self._p.occupancy_ms * (1 - self._p.hidden_share * overlap)

    def _finish(self, slot: _Slot, index: int) -> Iterator[PrefillDone | TokenDone]:
        slot.busy = False
        prefilled, done = slot.prefill, self._count(slot)
        slot.running.extend(prefilled)
        slot.prefill = []
        for request in done:
            request.remaining -= 1
            request.made += 1
            last = request.remaining == 0
            if last:
                slot.running.remove(request)
            if request in prefilled:
                yield PrefillDone(self.now_ms, request.key)
            yield TokenDone(self.now_ms, request.key, last)
        self._retract(slot)
        self._admit()
        self._begin_pass(index)
