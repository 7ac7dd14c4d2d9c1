# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Memory bandwidth of each card, measured by copies on the card through the CUDA driver API; only with leave, only on idle cards.

An edition's value is what its memory clock promises. What a card reaches differs by clock, ECC and temperature, so seconds
of copying say more. A copy reads and writes every byte once: 2 × bytes / time. Functions and their arguments: CUDA driver
API reference; the _v2 names are those that the header maps to since CUDA 4.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .apart import apart

LIBRARY = "libcuda.so.1"
# Far above every L2 cache (128 MB on GB202), so that memory itself is measured.
BUFFER_BYTES = 1 << 30
LEAST_BYTES = 256 << 20
USE_BYTES = 1 << 20
# Some rounds: an idle card needs a few tenths of a second to raise its clocks, and only the best round counts.
COPIES, ROUNDS = 40, 8
CLOCKS_UP_NS = 300_000_000
DEADLINE_S = 60.0
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


class NoCudaError(Exception):
    """The driver cannot be asked, or refused a call; the text says which and why."""


class Cuda:
    """The few calls of the driver that a copy needs. ``library`` is libcuda, or a stand-in."""

    def __init__(self, library: Any = None) -> None:
        if library is None:
            try:
                library = ctypes.CDLL(LIBRARY)
            except OSError as exc:
                raise NoCudaError(str(exc)) from exc
        self._library = library
        self._call("cuInit", ctypes.c_uint(0))

    def cards(self) -> dict[str, int]:
        """Return UUID -> ordinal of every card the driver shows."""
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        found = {}
        for ordinal in range(count.value):
            raw = (ctypes.c_ubyte * 16)()
            self._call("cuDeviceGetUuid_v2", ctypes.byref(raw), self._device(ordinal))
            text = bytes(raw).hex()
            found[f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"] = ordinal
        return found

    def copy_gb_s(self, ordinal: int, *, clock_ns: Callable[[], int] = time.perf_counter_ns) -> float:
        """Return the best of some rounds of copies on one card [GB/s, read and written bytes together]."""
        with self._buffers(ordinal, BUFFER_BYTES) as (buffers, size):
            self._copies(buffers, size, COPIES // 4)
            return max(self._timed(buffers, size, COPIES, clock_ns) for dummy in range(ROUNDS))

    def sustained_gb_s(self, ordinal: int, *, seconds: float = 1.0, clock_ns: Callable[[], int] = time.perf_counter_ns) -> float:
        """Return the mean over a time of copying [GB/s], so that what others do now and then counts; takes 512 MiB."""
        with self._buffers(ordinal, LEAST_BYTES) as (buffers, size):
            begun = clock_ns()
            while clock_ns() - begun < CLOCKS_UP_NS:
                self._copies(buffers, size, COPIES // 4)
            count, begun = 0, clock_ns()
            while (spent := clock_ns() - begun) < seconds * 1e9:
                self._copies(buffers, size, COPIES)
                count += COPIES
            return 2 * size * count / max(spent, 1)

    def use(self, ordinal: int) -> None:
        """Create a context on a card, take two small buffers, copy, and give all of it back."""
        with self._buffers(ordinal, USE_BYTES, least=USE_BYTES) as (buffers, size):
            self._copies(buffers, size, 2)

    @contextmanager
    def _buffers(self, ordinal: int, most: int, *, least: int = LEAST_BYTES) -> Iterator[tuple[Sequence[ctypes.c_size_t], int]]:
        """Hold two buffers on a card for as long as they are needed; give them and their size."""
        device, context = self._device(ordinal), _POINTER()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        buffers: list[ctypes.c_size_t] = []
        try:
            self._call("cuCtxSetCurrent", context)
            size = self._size(most, least)
            for dummy in range(2):
                buffer = _SIZE()
                self._call("cuMemAlloc_v2", ctypes.byref(buffer), _SIZE(size))
                buffers.append(buffer)
            yield buffers, size
        finally:
            for buffer in buffers:
                self._call("cuMemFree_v2", buffer)
            self._call("cuDevicePrimaryCtxRelease_v2", device)

    def _timed(self, buffers: Sequence[ctypes.c_size_t], size: int, count: int, clock_ns: Callable[[], int]) -> float:
        start = clock_ns()
        self._copies(buffers, size, count)
        return 2 * size * count / max(clock_ns() - start, 1)

    def _size(self, most: int, least: int) -> int:
        free, total = _SIZE(), _SIZE()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        size = min(most, free.value // 4)
        if size < least:
            raise NoCudaError(f"only {free.value >> 20} MiB are free on the card")
        return size

    def _copies(self, buffers: Sequence[ctypes.c_size_t], size: int, count: int) -> None:
        for number in range(count):
            target, source = buffers[number % 2], buffers[1 - number % 2]
            self._call("cuMemcpyDtoDAsync_v2", target, source, _SIZE(size), _POINTER())
        self._call("cuCtxSynchronize")

    def _device(self, ordinal: int) -> ctypes.c_int:
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        return device

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            code = getattr(self._library, name)(*arguments)
        except AttributeError as exc:
            raise NoCudaError(f"this driver has no {name}") from exc
        if code:
            raise NoCudaError(f"{name} failed with CUDA error {code}")


def measure(
    cards: Sequence[str], *, open_cuda: Callable[[], Cuda] = Cuda, copy: Callable[[Cuda, int], float] = Cuda.copy_gb_s
) -> dict[str, Any]:
    """Return {"gb_s": {UUID: figure}, "problems": [text]} for the named cards, one after the other."""
    found: dict[str, float] = {}
    problems: list[str] = []
    try:
        cuda = open_cuda()
        known = cuda.cards()
    except NoCudaError as exc:
        return {"gb_s": found, "problems": [f"bandwidth cannot be measured: {exc}"]}
    for uuid in cards:
        try:
            if uuid not in known:
                raise NoCudaError("CUDA does not show it")
            found[uuid] = round(copy(cuda, known[uuid]), 1)
        except NoCudaError as exc:
            problems.append(f"bandwidth of card {uuid} cannot be measured: {exc}")
    return {"gb_s": found, "problems": problems}


def sustained(cards: Sequence[str], *, open_cuda: Callable[[], Cuda] = Cuda) -> dict[str, Any]:
    """The same, as a mean over a second each instead of the best round."""
    return measure(cards, open_cuda=open_cuda, copy=Cuda.sustained_gb_s)


def measure_apart(cards: Sequence[str], *, deadline_s: float = DEADLINE_S, work: Callable[..., Any] = measure) -> dict[str, Any]:
    """Do it in a process of its own: a driver that hangs is left behind, and no memory of a card stays taken."""
    found = apart({"": partial(work, cards)}, deadline_s=deadline_s)[""]
    if found is None:
        return {"gb_s": {}, "problems": [f"bandwidth cannot be measured: the driver gave no answer within {deadline_s:g} s"]}
    return dict(found)


def remembered(path: Path | None, fresh: Mapping[str, float]) -> dict[str, float]:
    """Add fresh figures to those kept in a file and return all: a card that serves cannot be measured, but has been before."""
    known: dict[str, float] = {}
    if path is not None and path.exists():
        try:
            known = {str(uuid): float(value) for uuid, value in json.loads(path.read_text(encoding="utf-8")).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            known = {}
    every = {**known, **fresh}
    if path is not None and fresh:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    return every
