# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long a start may take for a model of a given size, and the systemd restart limits that follow from it."""

from __future__ import annotations

import math

from .errors import InferopsError
from .units import BYTES_PER_MIB

RESTART_S = 10
BURST = 3


def start_limits(size_bytes: int, load_mib_per_s: float, base_s: int) -> dict[str, int]:
    """Return start_s, restart_s, limit_burst and limit_interval_s [s] for a model of size_bytes [bytes].

    ``start_s = base_s + size / load_mib_per_s``, rounded up to a minute: the default 90 s of systemd kills a
    server while its weights load. ``limit_interval_s`` is wide enough to hold limit_burst failing starts of full
    length, for with a shorter one the limit never triggers and a server that cannot start is restarted for ever.

    >>> start_limits(595_000_000_000, 200, 900)
    {'start_s': 3780, 'restart_s': 10, 'limit_burst': 3, 'limit_interval_s': 15160}
    """
    if size_bytes < 0 or load_mib_per_s <= 0 or base_s <= 0:
        raise InferopsError(
            f"no start limit follows from {size_bytes} bytes at {load_mib_per_s} MiB/s over {base_s} s",
            where="sglang_service_load_mib_per_s, sglang_service_start_base_s",
            do="give a rate and a base above 0",
        )
    start_s = math.ceil((base_s + size_bytes / BYTES_PER_MIB / load_mib_per_s) / 60) * 60
    return {
        "start_s": start_s,
        "restart_s": RESTART_S,
        "limit_burst": BURST,
        "limit_interval_s": (BURST + 1) * (start_s + RESTART_S),
    }
