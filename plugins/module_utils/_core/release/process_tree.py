# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How much a process and its descendants have worked and read, from /proc: the sign of life of a loading engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Work:
    """Processor time and bytes read by read(2) since each process began; processes: how many are alive."""

    cpu_s: float
    read_bytes: int
    processes: int


def work_of(root: int, proc: Path = Path("/proc")) -> Work:
    """Return the summed work of a process tree; processes that end meanwhile are left out."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = int(fields[11]) + int(fields[12])
    tree = {root} & set(ticks)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in tree} - tree
        grown = bool(more)
        tree |= more
    read = 0
    for pid in tree:
        try:
            read += int((proc / str(pid) / "io").read_text().split("rchar:")[1].split()[0])
        except (OSError, IndexError, ValueError):
            continue
    return Work(sum(ticks[pid] for pid in tree) / CLOCK_TICKS_PER_S, read, len(tree))
