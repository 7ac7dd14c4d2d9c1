# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edges of a transaction: systemctl, files, HTTP on loopback, clock, gate. Tests hand in a simulated host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .ports import Listener


@dataclass(frozen=True)
class Ran:
    """What a command answered; ``code`` is 124 when its deadline ended it."""

    code: int
    output: str


@dataclass(frozen=True)
class Answer:
    """What an HTTP request answered; ``status`` is None when there was no answer at all, ``body`` then says why."""

    status: int | None
    body: str


class LockHeldError(Exception):
    """Somebody else holds the lock; the text says who, as they wrote it."""


class Host(Protocol):
    """Everything a transaction touches."""

    def now(self) -> float:
        """Return the wall clock in unix seconds."""

    def sleep(self, seconds: float) -> None: ...

    def boot_id(self) -> str: ...

    def systemctl(self, *words: str, timeout_s: float = 30.0) -> Ran: ...

    def run(self, words: list[str], timeout_s: float) -> Ran:
        """Run a read-only command for evidence."""

    def read(self, path: Path) -> str | None:
        """Return a file's text, or None when there is none."""

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        """Replace a file in one step that survives a power cut; folders are made."""

    def append(self, path: Path, line: str) -> None: ...

    def free_bytes(self, folder: Path) -> int:
        """Return what a file in this folder, which need not be there yet, could still take."""

    def remove(self, path: Path) -> None: ...

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder, none when it is absent."""

    def lock(self, path: Path, owner: str) -> AbstractContextManager[None]:
        """Hold a lock while inside, or raise LockHeldError; a dead holder holds nothing."""

    def http(self, url: str, *, key: str | None, body: Mapping[str, Any] | None, timeout_s: float) -> Answer: ...

    def listener(self, address: str, port: int) -> Listener | None:
        """Return who listens there already, or would be in the way."""

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
    ) -> dict[str, Any]: ...
