#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a client on one core and tell what it and all processes it ever started used: python launch.py CORE FILE -- COMMAND…

A process whose parent has died comes to us, so that nothing goes uncounted; what outlives the client by ten seconds is ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 10.0


def main() -> int:
    core, file, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[4:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot take over orphaned processes")
    os.sched_setaffinity(0, {core})
    began = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    wall_s = time.monotonic() - began
    deadline = time.monotonic() + GRACE_S
    while _some_left():
        if time.monotonic() > deadline:
            for pid in _children():
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    file.write_text(json.dumps({"status": status, "wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime}))
    return 0


def _some_left() -> bool:
    """Reap what has ended; tell whether anything still runs."""
    try:
        while True:
            pid, dummy = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
    except ChildProcessError:
        return False


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


if __name__ == "__main__":
    sys.exit(main())
