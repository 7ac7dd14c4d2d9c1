# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run what carries the weights: progress by what lies in the folder, a limit for programs that know none, an end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .listing import last_lines

LOOK_S = 0.2
SAY_S = 5.0
GROUP_S = 2.0
END_S = 10.0
GIB = 2**30


class NotStarted(OSError):
    """The program cannot be run on this host."""


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes; a file that vanishes meanwhile counts nothing."""
    total = 0
    for parent, dummy, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def carry(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    total: int,
    say: Callable[[str], None],
    hold_mib_per_s: float = 0,
    keep_open: Sequence[int] = (),
) -> str | None:
    """Run it to its end; return None, or why it failed. Raises NotStarted when it cannot be started.

    hold_mib_per_s: the process is stopped for moments while it is ahead of this; 0 means no limit. ``keep_open`` are
    descriptors it inherits, so that a lock lasts as long as the process.
    """
    with tempfile.TemporaryFile() as told:
        try:
            process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(keep_open),
            )
        except OSError as exc:
            raise NotStarted(exc.errno, exc.strerror) from exc
        try:
            _watch(process, folder, total, say, hold_mib_per_s)
        finally:
            _end(process)
        told.seek(0)
        said = told.read().decode("utf-8", "replace")
    return None if process.returncode == 0 else f"{command[0]} ended with {process.returncode}: {last_lines(said)}"


def _watch(process: subprocess.Popen[bytes], folder: Path, total: int, say: Callable[[str], None], hold: float) -> None:
    begun = spoke = time.monotonic()
    before = on_disk(folder)
    while process.poll() is None:
        _wait(process, LOOK_S)
        now = time.monotonic()
        if not hold and now - spoke < SAY_S:
            continue
        there = on_disk(folder)
        if now - spoke >= SAY_S:
            spoke = now
            say(progress(there, total, (there - before) / (now - begun)))
        ahead_s = (there - before) / (hold * 2**20) - (now - begun) if hold else 0
        if ahead_s > 0:
            # It may have ended since it was looked at; then there is nothing to hold.
            _signal(process.pid, signal.SIGSTOP)
            time.sleep(min(ahead_s, 1.0))
            _signal(process.pid, signal.SIGCONT)


def progress(there: int, total: int, per_s: float) -> str:
    """
    >>> progress(3 * GIB, 12 * GIB, GIB / 2)
    '3.0 of 12.0 GiB, 25 %, 512 MiB/s, 18 s to go'
    """
    share = min(100.0, 100 * there / total) if total else 100.0
    left = f", {max(0, total - there) / per_s:.0f} s to go" if per_s > 0 else ""
    return f"{there / GIB:.1f} of {total / GIB:.1f} GiB, {share:.0f} %, {per_s / 2**20:.0f} MiB/s{left}"


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind, whatever ended the watch."""
    if process.poll() is not None:
        return
    for number in (signal.SIGCONT, signal.SIGTERM):
        os.killpg(process.pid, number)
    _wait(process, END_S)
    # rsync is several processes; the first may go before the others let go of the revision.
    for code in (0, int(signal.SIGKILL)):
        until = time.monotonic() + GROUP_S
        while _signal(process.pid, code) and time.monotonic() < until:
            time.sleep(0.02)
    process.wait()


def _signal(group: int, number: int) -> bool:
    """Signal the group; return whether anything of it is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
