# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host this program runs on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .host import Answer, LockHeldError, Ran
from .ports import Listener, find_listener

ANSWER_LIMIT_BYTES = 16 << 20
# Loopback only: a proxy from the environment must not see these requests.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class RealHost:
    """See Host."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def boot_id(self) -> str:
        """Return an id that is new after every boot.

        A container shares the kernel's boot_id with its machine, so the start time of its PID 1 is part of it.
        """
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        started = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
        return f"{kernel}-{started}"

    def systemctl(self, *words: str, timeout_s: float = 30.0) -> Ran:
        return self.run(["systemctl", *words], timeout_s)

    def run(self, words: list[str], timeout_s: float) -> Ran:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
                env={**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"},
            )
        except subprocess.TimeoutExpired as exc:
            return Ran(124, (exc.stdout or b"").decode(errors="replace"))
        except OSError as exc:
            return Ran(127, f"{words[0]}: {exc.strerror}")
        return Ran(done.returncode, done.stdout.decode(errors="replace"))

    def read(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), mode)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as exc:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise _not_written(path, exc) from exc
        _sync_folder(path.parent)

    def append(self, path: Path, line: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            channel = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(channel, line.encode() + b"\n")
                os.fsync(channel)
            finally:
                os.close(channel)
        except OSError as exc:
            raise _not_written(path, exc) from exc

    def free_bytes(self, folder: Path) -> int:
        while not folder.is_dir():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            _sync_folder(path.parent)

    def names(self, folder: Path) -> list[str]:
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    @contextlib.contextmanager
    def lock(self, path: Path, owner: str) -> Iterator[None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        channel = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(channel, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockHeldError(os.pread(channel, 4096, 0).decode(errors="replace").strip()) from None
            os.ftruncate(channel, 0)
            os.pwrite(channel, owner.encode(), 0)
            yield
        finally:
            os.close(channel)

    def http(self, url: str, *, key: str | None, body: Mapping[str, Any] | None, timeout_s: float) -> Answer:
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with OPENER.open(urllib.request.Request(url, data=data, headers=headers), timeout=timeout_s) as answer:
                return Answer(answer.status, answer.read(ANSWER_LIMIT_BYTES).decode(errors="replace"))
        except urllib.error.HTTPError as exc:
            with exc:
                return Answer(exc.code, exc.read(4096).decode(errors="replace"))
        except (OSError, ValueError) as exc:
            return Answer(None, str(getattr(exc, "reason", None) or exc or type(exc).__name__))
        except Exception as exc:  # http.client raises its own family for half answers
            return Answer(None, f"{type(exc).__name__}: {exc}")

    def listener(self, address: str, port: int) -> Listener | None:
        return find_listener(address, port)

    def gate(
        self,
        base_url: str,
        plan: Mapping[str, Any],
        folder: Path,
        *,
        key: str | None,
        context: Mapping[str, Any],
        on_progress: Callable[[dict[str, Any]], None],
        should_stop: Callable[[], bool],
    ) -> dict[str, Any]:
        """Run the gate and return its result; its code is loaded only when there is something to gate."""
        from ..gate.context import GateContext
        from ..gate.plan import GatePlan
        from ..gate.run import run_gate

        return run_gate(
            base_url,
            GatePlan.from_dict(dict(plan)),
            folder,
            api_key=key,
            context=GateContext.from_dict(context),
            on_progress=on_progress,
            should_stop=should_stop,
        )


def _not_written(path: Path, exc: OSError) -> InferopsError:
    return InferopsError(f"{path} cannot be written: {exc.strerror}", where=str(path), do="free space or rights there")


def _sync_folder(folder: Path) -> None:
    channel = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(channel)
    finally:
        os.close(channel)
