# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was observed during a gate, in the form the diagnosis rules read. Absent stays None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .card_words import short_ids

Finding = dict[str, Any]


@dataclass(frozen=True)
class Observed:
    """Measurements of one gate. Nothing here is what somebody asked for, except where the name says so."""

    points: tuple[Mapping[str, Any], ...]
    gpus: tuple[Mapping[str, Any], ...]
    pp_size: int | None
    tp_size: int | None
    num_layers: int | None
    graph_passes: float | None
    eager_passes: float | None
    graphs_resolved_off: bool | None
    """The running server's own resolved value, used only where it keeps no pass counters."""
    required_graph_ratio: float | None
    device: str | None
    stage_read_bytes: tuple[float, ...] | None
    """Bytes each stage should read for one token; explains a busier last stage."""

    @classmethod
    def of(cls, result: Mapping[str, Any], evidence: Mapping[str, Any]) -> Observed:
        engine = result.get("engine") or {}
        resolved = engine.get("resolved") or {}
        decode = (engine.get("graph_passes") or {}).get("decode") or {}
        require = evidence.get("require") or (result.get("plan") or {}).get("require") or {}
        reads = evidence.get("stage_read_bytes")
        return cls(
            points=tuple(point for point in result.get("points") or () if isinstance(point, Mapping)),
            gpus=tuple(gpu for gpu in result.get("gpus") or () if isinstance(gpu, Mapping)),
            pp_size=_whole(evidence.get("pp_size"), resolved.get("pp_size")),
            tp_size=_whole(evidence.get("tp_size"), resolved.get("tp_size")),
            num_layers=_whole(evidence.get("num_layers")),
            graph_passes=number(decode.get("graph")),
            eager_passes=number(decode.get("eager")),
            graphs_resolved_off=graphs_off(resolved),
            device=resolved.get("device") if isinstance(resolved.get("device"), str) else None,
            required_graph_ratio=number(require.get("decode_graph_pass_ratio")),
            stage_read_bytes=tuple(reads) if reads else None,
        )

    @property
    def graph_ratio(self) -> float | None:
        """Share of decode passes that ran as a graph, by the engine's own counters; None when it counted nothing."""
        if self.graph_passes is None and self.eager_passes is None:
            return None
        total = (self.graph_passes or 0) + (self.eager_passes or 0)
        return (self.graph_passes or 0) / total if total else None

    @property
    def closed(self) -> tuple[Mapping[str, Any], ...]:
        """The points that kept a number of requests in flight. Arrivals at a rate leave gaps, which would pass for waits."""
        return tuple(point for point in self.points if point.get("rate") is None)

    def point(self, concurrency: int) -> Mapping[str, Any] | None:
        return next((point for point in self.closed if point.get("concurrency") == concurrency), None)

    @property
    def largest(self) -> Mapping[str, Any] | None:
        """The point with the most requests in flight."""
        known = [point for point in self.points if isinstance(point.get("concurrency"), int)]
        return max(known, key=lambda point: int(point["concurrency"]), default=None)

    @property
    def reachable(self) -> float | None:
        """How many stages can work at once in the long run: the heaviest one sets the pace; None without their shares."""
        reads = self.stage_read_bytes
        return None if reads is None or len(reads) != self.pp_size or max(reads) <= 0 else sum(reads) / max(reads)

    @property
    def mean_power_w(self) -> float | None:
        return mean([number((gpu.get("power_w") or {}).get("mean")) for gpu in self.gpus])

    @property
    def power_ratio(self) -> float | None:
        """Mean over cards of drawn power / power limit; None while one of them is unknown."""
        pairs = [((gpu.get("power_w") or {}).get("mean"), (gpu.get("power_w") or {}).get("limit")) for gpu in self.gpus]
        return mean([drawn / limit if drawn is not None and limit else None for drawn, limit in pairs])

    @property
    def mean_utilization(self) -> float | None:
        return mean([number(gpu.get("utilization_ratio")) for gpu in self.gpus])

    def stage_utilization(self, gpus: Sequence[Mapping[str, Any]] | None = None) -> tuple[float, ...] | None:
        """Busy share of each stage (mean over its cards), index = pp_rank; None when a stage was not observed."""
        if self.pp_size is None or self.pp_size < 2:
            return None
        stages: dict[int, list[float]] = {}
        for gpu in self.gpus if gpus is None else gpus:
            busy = number(gpu.get("utilization_ratio"))
            if isinstance(gpu.get("stage"), int) and busy is not None:
                stages.setdefault(gpu["stage"], []).append(busy)
        if set(stages) != set(range(self.pp_size)):
            return None
        return tuple(sum(stages[rank]) / len(stages[rank]) for rank in range(self.pp_size))

    def stage_name(self, stage: int) -> str:
        """A stage with the cards that hold it, by number and UUID."""
        short = short_ids([str(gpu["uuid"]) for gpu in self.gpus if gpu.get("uuid")])
        cards = [gpu for gpu in self.gpus if gpu.get("stage") == stage]
        named = [", ".join([f"card {gpu.get('index')}", *filter(None, [short.get(str(gpu.get("uuid")))])]) for gpu in cards]
        return f"stage {stage}" + (f" ({'; '.join(named)})" if named else "")


def part(point: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """A part of a point, empty where it is not there."""
    found = (point or {}).get(name)
    return found if isinstance(found, Mapping) else {}


def cards_of(point: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    found = (point or {}).get("gpus")
    return tuple(gpu for gpu in found if isinstance(gpu, Mapping)) if isinstance(found, list) else ()


def requests_per_s(point: Mapping[str, Any]) -> float | None:
    """Completed requests per second, from tokens per second and tokens per request."""
    speed, tokens = number(point.get("output_tokens_per_s")), number(part(point, "output_tokens").get("mean"))
    return speed / tokens if speed is not None and tokens else None


def working(point: Mapping[str, Any]) -> float | None:
    """Mean number of requests inside the engine and past its queue, by Little's law from the engine's own latencies.

    The gauge of running requests will not do: on a pipeline it counts one micro-batch (SGLang 0.5.23, srt/managers/
    scheduler_components/metrics_reporter.py, report_decode_stats).
    """
    rate, engine = requests_per_s(point), part(point, "engine")
    e2e, queue = number(engine.get("e2e_ms")), number(engine.get("queue_ms"))
    return None if rate is None or e2e is None else rate * max(e2e - (queue or 0.0), 0.0) / 1000


def numbers(value: Any) -> list[float] | None:
    """A list of numbers, None for anything else."""
    if not isinstance(value, (list, tuple)):
        return None
    found = [number(item) for item in value]
    known = [item for item in found if item is not None]
    return known if known and len(known) == len(found) else None


def graphs_off(resolved: Mapping[str, Any]) -> bool | None:
    """Tell from resolved arguments whether decode graphs are off; None when they do not say.

    Names: disable_cuda_graph (all releases), cuda_graph_config (from 0.5.14), nested or dotted.
    """
    backend = resolved.get("cuda_graph_config.decode.backend")
    config = resolved.get("cuda_graph_config")
    if backend is None and isinstance(config, Mapping):
        backend = (config.get("decode") or {}).get("backend")
    if backend is not None:
        return str(backend) == "disabled"
    off = resolved.get("disable_cuda_graph")
    return None if off is None else bool(off)


def finding(code: str, message: str, do: str, *, lost: float | None = None, **evidence: Any) -> Finding:
    """Return one finding; numbers that are unknown are left out of its evidence.

    ``lost``: an estimate of the share of time that this cause takes, by which findings are put in order.
    """
    if lost is not None:
        evidence["lost_ratio"] = min(max(lost, 0.0), 1.0)
    numbers = {key: rounded(value) for key, value in evidence.items() if value is not None}
    return {"code": code, "message": message, "evidence": numbers, "do": do}


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def number(value: Any) -> float | None:
    """Return a real number, or None for anything else (a bool is not a number here)."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def mean(values: list[float | None]) -> float | None:
    """Mean; None for no values or when one is unknown."""
    if not values or any(value is None for value in values):
        return None
    return sum(value for value in values if value is not None) / len(values)


def _whole(*values: Any) -> int | None:
    return next((int(value) for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
