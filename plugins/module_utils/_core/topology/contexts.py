# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether CUDA works on a card: a context is created there and a copy made, since one that NVML lists may still refuse CUDA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .apart import apart
from .bandwidth import Cuda, NoCudaError

# A context takes about a second on a large card, all cards at once somewhat more; what takes this long hangs.
DEADLINE_S = 60.0


def create_contexts(
    cards: Sequence[str], *, open_cuda: Callable[[], Cuda] = Cuda, deadline_s: float = DEADLINE_S
) -> dict[str, str | None]:
    """Return UUID -> what is wrong, None where a context was created and memory there could be used."""
    said = apart({uuid: partial(_create, uuid, open_cuda) for uuid in cards}, deadline_s=deadline_s)
    return {uuid: f"no answer within {deadline_s:g} s" if found is None else found["problem"] for uuid, found in said.items()}


def _create(uuid: str, open_cuda: Callable[[], Cuda]) -> dict[str, str | None]:
    try:
        cuda = open_cuda()
        known = cuda.cards()
        if uuid not in known:
            raise NoCudaError("CUDA does not show it")
        cuda.use(known[uuid])
    except NoCudaError as exc:
        return {"problem": str(exc)}
    return {"problem": None}
