# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One fault of a driver: how it shows, what it means, what to do."""

from __future__ import annotations

from dataclasses import dataclass

KERNEL, DKMS, PACKAGES, NVML = "kernel log", "dkms log", "package manager", "NVML or CUDA"


@dataclass(frozen=True)
class Fault:
    """One fault. ``patterns`` are regular expressions over one line of a text of ``sources``; any of them is evidence."""

    code: str
    verdict: str
    sources: tuple[str, ...]
    patterns: tuple[str, ...]
    why: str
    do: str
    stop: bool = False
