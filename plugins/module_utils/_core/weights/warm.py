# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read weights into the page cache while the old release still serves, so that the new one does not wait for the disk."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .carry import SAY_S, progress

MEMINFO = Path("/proc/meminfo")
FAILED = ctypes.c_void_p(-1).value
PIECE = 8 * 2**20


def available(meminfo: Path = MEMINFO) -> int | None:
    """Return the memory that can be had without swapping [bytes]; None where the kernel does not say."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def cached(path: Path) -> bool:
    """Tell whether every page of a file is in memory, without reading it: a read that must not wait still starts one."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_longlong]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        place = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if place == FAILED:
            return False
        try:
            pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
            told = libc.mincore(place, size, pages)
            return told == 0 and pages.raw.count(b"\0") == 0
        finally:
            libc.munmap(place, size)


def warm(paths: Sequence[Path], say: Callable[[str], None], *, memory: int | None, reserve: int = 0) -> str:
    """Read the files that are not in memory; return one sentence about it. Too little memory reads nothing."""
    cold = [path for path in paths if not cached(path)]
    size = sum(path.stat().st_size for path in cold)
    if not cold:
        return "the weights are in the page cache"
    if memory is None or size + reserve > memory:
        has = "is not known" if memory is None else f"is {memory / 2**30:.1f} GiB"
        return f"the weights are not read ahead: they take {size / 2**30:.1f} GiB, memory that can be had {has}"
    begun = spoke = time.monotonic()
    done = 0
    for path in cold:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(PIECE):
                done += len(piece)
                now = time.monotonic()
                if now - spoke > SAY_S:
                    spoke = now
                    say("page cache: " + progress(done, size, done / (now - begun)))
    return f"read {size / 2**30:.1f} GiB into the page cache in {time.monotonic() - begun:.0f} s"
