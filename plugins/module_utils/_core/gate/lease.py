# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may load a server and for how long: a lease that followers renew, and a lock so that two gates never mix."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import InferopsError


class Lease:
    """A file whose modification time says when somebody last followed the run."""

    def __init__(self, path: Path, seconds: float, *, now: Callable[[], float] = time.time) -> None:
        self.path, self.seconds, self._now = path, seconds, now

    def renew(self) -> None:
        self.path.touch()
        moment = self._now()
        os.utime(self.path, (moment, moment))

    def expired(self) -> bool:
        """Tell whether nobody has followed for the agreed time; a missing file counts as nobody."""
        try:
            return self._now() - self.path.stat().st_mtime > self.seconds
        except FileNotFoundError:
            return True


def _shared(path: Path) -> int:
    """Open a file that every login of the host may lock: what only looks gates as an ordinary user, a release as root.

    In a folder like /tmp the kernel refuses even root O_CREAT on a file of others (fs.protected_regular), so that comes last.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        handle = os.open(path, flags | os.O_CREAT, 0o644)
        with contextlib.suppress(PermissionError):  # somebody else was faster
            os.fchmod(handle, 0o644)
        return handle


@contextlib.contextmanager
def only_gate(base_url: str, *, folder: Path | None = None) -> Iterator[None]:
    """Hold the right to load a server from this host, or raise InferopsError when another gate has it.

    The kernel lets go of it when the process ends, however it ends.
    """
    name = f"inferops-gate-{hashlib.sha256(base_url.encode()).hexdigest()[:12]}.lock"
    path = (Path(tempfile.gettempdir()) if folder is None else folder) / name
    try:
        handle = _shared(path)
    except OSError as exc:
        what = "cannot tell whether another gate loads this server"
        raise InferopsError(
            what, where=str(path), why=str(exc), do="remove this file; no gate holds it for longer than it runs"
        ) from exc
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what, why = "another gate is loading this server", "two loads would spoil both figures"
            raise InferopsError(what, where=base_url, why=why, do="wait until it ends") from None
        yield
    finally:
        os.close(handle)
