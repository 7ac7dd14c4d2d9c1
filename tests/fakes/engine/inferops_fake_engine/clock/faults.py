"""What may be wrong with a simulated server beyond its costs: one field per fault, all off by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Faults:
    """``slow_hops``: pp_rank that sends -> extra time [ms].  ``kv_tokens``: size of the KV pool, None is endless.

    ``compile_after``: after so many admitted requests the next pass waits ``compile_ms`` for a kernel that is compiled.
    """

    slow_hops: Mapping[int, float] = field(default_factory=dict)
    kv_tokens: int | None = None
    compile_after: tuple[int, ...] = ()
    compile_ms: float = 0.0


NO_FAULTS = Faults()
