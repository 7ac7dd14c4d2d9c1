# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hosts that cases pretend to run on: what nvidia-smi and torch say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cards:
    """Identical cards of one host. ``sm``: compute capability times ten; memory of one card [MiB], as nvidia-smi prints it."""

    name: str
    sm: int
    memory_mib: int
    multiprocessors: int
    count: int

    @property
    def capability(self) -> tuple[int, int]:
        return divmod(self.sm, 10)

    def facts(self) -> dict[str, Any]:
        """The facts the check is given for such a host."""
        return {
            "platform": "cuda",
            "gpu_name": self.name,
            "gpu_count": self.count,
            "sm": self.sm,
            "gpu_memory_mib": self.memory_mib,
        }


HARDWARE = {
    "8xRTXPRO6000": Cards("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 97887, 188, 8),
    "8xH200": Cards("NVIDIA H200", 90, 143771, 132, 8),
    "8xB200": Cards("NVIDIA B200", 100, 183359, 148, 8),
    "8xA100": Cards("NVIDIA A100-SXM4-80GB", 80, 81920, 108, 8),
    "8xL4": Cards("NVIDIA L4", 89, 23034, 58, 8),
    "1xL4": Cards("NVIDIA L4", 89, 23034, 58, 1),
}
