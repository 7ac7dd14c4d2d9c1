# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The result folder, written as the run goes so that it can be read after a kill at any moment, and on a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError

RESULT, SAMPLES, PROGRESS = "result.json", "samples.jsonl", "progress.jsonl"
RESERVE, RESERVED_BYTES = ".reserve", 1 << 20


class ResultFolder:
    """Appends whole lines and replaces result.json in one step.

    Nothing here raises once the folder is open: the first write that fails is kept in ``problem``, what is in the folder
    stays whole, and the room held in reserve lets result and reports still be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self._lock = threading.Lock()
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Unbuffered: each line is in the kernel's hands, and survives a kill, before the next one is made.
            self._files = {name: (path / name).open("wb", buffering=0) for name in (SAMPLES, PROGRESS)}
            (path / RESULT).unlink(missing_ok=True)
            with (path / RESERVE).open("wb") as reserve:
                os.posix_fallocate(reserve.fileno(), 0, RESERVED_BYTES)
        except OSError as exc:
            raise InferopsError(
                "the result folder cannot be written",
                where=str(path),
                why=str(exc),
                do="make room there, or choose another --out",
            ) from exc

    def sample(self, line: Mapping[str, Any]) -> None:
        """Write one request, or one reading beside the load."""
        self._append(SAMPLES, line)

    def progress(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Write one progress line with the wall-clock time in front; return it."""
        stamped = {"t": round(time.time(), 3), "phase": "gate", **line}
        self._append(PROGRESS, stamped)
        return stamped

    def result(self, result: Mapping[str, Any]) -> None:
        """Replace result.json; on a full disk once more in the place of the old one, which is then all there is."""
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        fresh = self.path / (RESULT + ".new")
        for dummy in range(2):
            try:
                fresh.write_text(text, encoding="utf-8")
                fresh.replace(self.path / RESULT)
                return
            except OSError as exc:
                with contextlib.suppress(OSError):
                    fresh.unlink(missing_ok=True)
                with self._lock:
                    self._failed(exc)

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            with contextlib.suppress(OSError):
                (self.path / RESERVE).unlink(missing_ok=True)

    def release(self) -> None:
        """Give up the room held in reserve: the reports come next."""
        with contextlib.suppress(OSError):
            (self.path / RESERVE).unlink(missing_ok=True)

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        with self._lock:
            file = self._files[name]
            if file.closed or (self.problem is not None and name != PROGRESS):
                return
            end = file.tell()
            try:
                # A disk that fills up takes part of a line first; half a line is none.
                while data:
                    data = data[file.write(data) :]
            except OSError as exc:
                with contextlib.suppress(OSError):
                    file.truncate(end)
                    file.seek(end)
                self._failed(exc)

    def _failed(self, exc: OSError) -> None:
        if self.problem is None:
            self.problem = exc.strerror or str(exc)
            self.release()
