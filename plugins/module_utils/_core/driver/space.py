# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Free space of the file systems that a driver needs."""

from __future__ import annotations

import os
from pathlib import Path


def free_mib(path: Path, *, unless_on: Path | None = None) -> int | None:
    """Return what is free [MiB]; None where nobody can tell, or where it lies on the file system of ``unless_on``."""
    try:
        if unless_on is not None and path.stat().st_dev == unless_on.stat().st_dev:
            return None
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize // (1024 * 1024)
