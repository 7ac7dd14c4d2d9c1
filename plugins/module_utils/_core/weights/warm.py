# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read weights into the page cache while the old release still serves, so that the new one does not wait for the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .carry import SAY_S, progress

MEMINFO = Path("/proc/meminfo")
STEP = 64 * 2**20
PIECE = 8 * 2**20


def available(meminfo: Path = MEMINFO) -> int | None:
    """Return the memory that can be had without swapping [bytes]; None where the kernel does not say."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def cached(path: Path) -> bool:
    """Tell whether one page of every 64 MiB of a file is in memory."""
    page = bytearray(1)
    with path.open("rb", buffering=0) as file:
        for place in range(0, os.fstat(file.fileno()).st_size, STEP):
            try:
                os.preadv(file.fileno(), [page], place, os.RWF_NOWAIT)
            except BlockingIOError:
                return False
            except OSError:
                # A file system that does not tell: read it.
                return False
    return True


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
