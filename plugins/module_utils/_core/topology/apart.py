# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Work in throw-away processes with a time limit: a driver that hangs is left behind, and nothing of a card stays taken."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

# A killed process ends at once, unless it waits in the driver itself; such a one is not waited for.
ENDS_WITHIN_S = 1.0


def apart(works: Mapping[str, Callable[[], Any]], *, deadline_s: float) -> dict[str, Any]:
    """Do every work in a process of its own, all at once; return what each gave, None for one that gave nothing in time."""
    children = {key: _begin(work) for key, work in works.items()}
    deadline = time.monotonic() + deadline_s
    try:
        said = {key: _answer(ours, deadline) for key, (dummy, ours) in children.items()}
    finally:
        for child, ours in children.values():
            os.close(ours)
            os.kill(child, signal.SIGKILL)
        for child, dummy in children.values():
            leave(child)
    return said


def leave(child: int, *, within_s: float = ENDS_WITHIN_S) -> bool:
    """Collect a process that was killed; say whether it ended. One that is stuck in the driver ends when the driver lets it."""
    deadline = time.monotonic() + within_s
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _begin(work: Callable[[], Any]) -> tuple[int, int]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            os.write(theirs, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    return child, ours


def _answer(ours: int, deadline: float) -> Any:
    data = b""
    while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(ours, 65536)
        if not part:
            break
        data += part
    try:
        return json.loads(data)
    except ValueError:
        return None
