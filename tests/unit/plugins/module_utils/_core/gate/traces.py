# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Traces and loads made by hand, for tests that need no server."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.bound import PointBound
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.load import PointLoad
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import Trace
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.roofline import Bound, Filling

MS = 1_000_000


def trace(start_ms: float, ttft_ms: float, gaps_ms: list[float], *, status: str = "ok") -> Trace:
    """One request whose chunks hold one token each."""
    made = Trace(planned_ns=round(start_ms * MS), status=status, input_tokens=8, cached_tokens=0)
    moment = made.planned_ns + round(ttft_ms * MS)
    made.chunks.append([moment, 1])
    for gap in gaps_ms:
        moment += round(gap * MS)
        made.chunks.append([moment, 1])
    made.done_ns = moment
    made.output_tokens = made.events = len(made.chunks)
    made.characters, made.distinct, made.text = 100, set("abcdefgh"), "abcdefgh"
    return made


def load_of(cycles: list[list[tuple[float, list[float]]]]) -> PointLoad:
    """A load from (ttft, gaps) per worker and cycle, each cycle starting where the one before ended."""
    load = PointLoad(len(cycles), [[] for _ in cycles], window_start_ns=0)
    for stream, worker in zip(load.streams, cycles, strict=True):
        start = 0.0
        for ttft, gaps in worker:
            stream.append(trace(start, ttft, gaps))
            start = (stream[-1].done_ns or 0) / MS
    load.window_end_ns = max((one.done_ns or 0 for one in load.window), default=0)
    return load


def bound_of(tokens_per_s: float, *, ceiling_ratio: float = 1.0) -> PointBound:
    """A bound of so many tokens per second, without a pipeline."""
    return PointBound(Bound(*[Filling(1, 1, tokens_per_s)] * 3), pipelined=False, ceiling_ratio=ceiling_ratio)
