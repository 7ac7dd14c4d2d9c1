# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One at a time on a host: a lock of the kernel on the folder of environments, which ends with whoever holds it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InferopsError

LOCK_NAME = ".lock"


@contextmanager
def held(
    root: Path,
    what: str,
    wait_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[int]:
    """Hold the folder and yield the descriptor of the lock; raises InferopsError when it is not free within wait_s [s].

    The descriptor is to be handed to child processes: an installer that outlives us keeps the folder held until it ends.
    """
    path = root / LOCK_NAME
    since = clock()
    with path.open("a+", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock() - since >= wait_s:
                    raise InferopsError(
                        f"another run works on the engines of this host and has not ended within {wait_s:g} s",
                        where=str(path),
                        why=_holder(path),
                        do="wait until it has ended and run this again, or allow more in sglang_engine_wait_s",
                    ) from None
                sleep(0.2)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), "what": what}))
        file.flush()
        try:
            yield file.fileno()
        finally:
            file.truncate(0)


def _holder(path: Path) -> str:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"process {said['pid']} holds it since {said['since']}: {said['what']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that has not written who it is (or one that an interrupted run has left) holds it"
