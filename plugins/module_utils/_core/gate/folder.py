# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The result folder, written as the run goes so that it can be read after a kill at any moment."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError

RESULT, SAMPLES, PROGRESS, GPU = "result.json", "samples.jsonl", "progress.jsonl", "gpu.jsonl"


class ResultFolder:
    """Appends whole lines and replaces result.json in one step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Line buffered: each line is in the kernel's hands, and survives a kill, before the next one is made.
            self._files = {name: (path / name).open("w", buffering=1, encoding="utf-8") for name in (SAMPLES, PROGRESS, GPU)}
            (path / RESULT).unlink(missing_ok=True)
        except OSError as exc:
            raise InferopsError(
                "the result folder cannot be written", where=str(path), why=str(exc), do="choose another --out"
            ) from exc

    def sample(self, line: Mapping[str, Any]) -> None:
        self._append(SAMPLES, line)

    def gpu(self, line: Mapping[str, Any]) -> None:
        self._append(GPU, line)

    def progress(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Write one progress line with the wall-clock time in front; return it."""
        stamped = {"t": round(time.time(), 3), "phase": "gate", **line}
        self._append(PROGRESS, stamped)
        return stamped

    def result(self, result: Mapping[str, Any]) -> None:
        fresh = self.path / (RESULT + ".new")
        fresh.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        fresh.replace(self.path / RESULT)

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"
        with self._lock:
            if not self._files[name].closed:
                self._files[name].write(text)
