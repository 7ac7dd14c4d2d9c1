"""The network between a simulated server and its clients: a delay before each answer, and so many bytes per second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .control import Control


class Link:
    def __init__(self, control: Callable[[], Control]) -> None:
        self._control = control
        self._free_at = 0.0
        self._bytes_per_s: float | None = None

    async def open(self) -> None:
        """Wait before an answer; the controls are looked at here, not for each chunk."""
        control = self._control()
        self._bytes_per_s = control.link_bytes_per_s
        if control.link_delay_ms:
            await asyncio.sleep(control.link_delay_ms / 1000)

    async def carry(self, size: int) -> None:
        """Return when the link has let this many bytes through, after all that came before."""
        if self._bytes_per_s is None:
            return
        now = asyncio.get_running_loop().time()
        self._free_at = max(now, self._free_at) + size / self._bytes_per_s
        await asyncio.sleep(self._free_at - now)
