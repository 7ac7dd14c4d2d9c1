# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate plan: what load is put on, how long, and which limits must hold. Unknown keys are refused by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InferopsError
from . import plan_values as read
from .load_words import load_key, load_words
from .plan_correctness import Correctness, Sanity, correctness, sanity
from .plan_limits import LIMITS, Limit, default_limit, limit
from .prompt_file import PromptFile, prompt_file

REQUIREMENTS = ("decode_graph_pass_ratio", "prefill_graph_pass_ratio")
DEFAULT_LIMITS = ("auto", "none")
ARRIVALS = ("poisson", "constant")
ENDPOINTS = ("completions", "chat", "generate")
LOAD_KEYS = ("concurrency", "rate", "arrivals", "max_in_flight")
MOST_IN_FLIGHT = 1024
MOST_PROCESSES = 64


@dataclass(frozen=True)
class Point:
    """One load with its limits; without limits it is observed.

    A closed loop keeps ``concurrency`` requests in flight. In an open one (``rate`` set, requests/s) they arrive by a
    schedule of their own, and ``concurrency`` is the most that may be in flight (``max_in_flight`` of the plan).
    """

    concurrency: int
    limits: tuple[Limit, ...] = ()
    rate: float | None = None
    arrivals: str | None = None

    def load(self) -> dict[str, Any]:
        """Return the load as the plan writes it."""
        if self.rate is None:
            return {"concurrency": self.concurrency}
        return {"rate": self.rate, "arrivals": self.arrivals, "max_in_flight": self.concurrency}

    @property
    def key(self) -> int | str | None:
        return load_key(self.load())

    @property
    def words(self) -> str:
        return load_words(self.load())


@dataclass(frozen=True)
class GatePlan:
    """A validated plan. Defaults are documented in docs/metrics.md."""

    points: tuple[Point, ...]
    model: str | None = None
    endpoint: str = "completions"
    prompts: PromptFile | None = None
    input_tokens: int = 512
    output_tokens: int = 256
    confidence: float = 0.95
    min_seconds_per_point: float = 10.0
    max_seconds_per_point: float = 180.0
    stall_timeout_s: float = 60.0
    temperature: float = 1.0
    seed: int = 7
    client_processes: int | None = None
    correctness: Correctness = field(default_factory=Correctness)
    sanity: Sanity = field(default_factory=Sanity)
    require: Mapping[str, float] = field(default_factory=dict)
    default_limits: str = "auto"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> GatePlan:
        """Return the plan for a mapping as written in YAML or JSON, or raise InferopsError naming the key."""
        if not isinstance(raw, Mapping):
            raise InferopsError("the gate plan is not a mapping", where="plan", do="write points: [{concurrency: 1}]")
        known = tuple(cls.__dataclass_fields__)
        read.refuse_unknown(raw, known, "plan", "key of a gate plan")
        points = raw.get("points")
        if not isinstance(points, (list, tuple)) or not points:
            raise InferopsError("the gate plan has no points", where="plan.points", do="add at least points: [{concurrency: 1}]")
        output_tokens = read.whole(raw, "output_tokens", cls.output_tokens, least=2)
        plan = cls(
            points=tuple(_point(point, f"plan.points[{index}]", output_tokens) for index, point in enumerate(points)),
            model=read.text(raw.get("model"), "plan.model"),
            endpoint=read.choice(raw, "endpoint", cls.endpoint, ENDPOINTS),
            prompts=prompt_file(raw.get("prompts")),
            input_tokens=read.whole(raw, "input_tokens", cls.input_tokens, least=1),
            output_tokens=output_tokens,
            confidence=read.number(raw, "confidence", cls.confidence, low=0.5, high=0.9999),
            min_seconds_per_point=read.number(raw, "min_seconds_per_point", cls.min_seconds_per_point, low=0, high=86400),
            max_seconds_per_point=read.number(raw, "max_seconds_per_point", cls.max_seconds_per_point, low=0.1, high=86400),
            stall_timeout_s=read.number(raw, "stall_timeout_s", cls.stall_timeout_s, low=0.05, high=3600),
            temperature=read.number(raw, "temperature", cls.temperature, low=0, high=2),
            seed=read.whole(raw, "seed", cls.seed, least=0),
            client_processes=read.whole_or_none(raw, "client_processes", least=1, most=MOST_PROCESSES),
            correctness=correctness(raw.get("correctness")),
            sanity=sanity(raw.get("sanity")),
            require=_requirements(raw.get("require")),
            default_limits=read.choice(raw, "default_limits", "auto", DEFAULT_LIMITS),
        )
        if plan.min_seconds_per_point > plan.max_seconds_per_point:
            raise InferopsError(
                f"a point cannot last at least {plan.min_seconds_per_point:g} s and at most {plan.max_seconds_per_point:g} s",
                where="plan.min_seconds_per_point",
                do="set it no higher than max_seconds_per_point",
            )
        return plan

    def as_dict(self) -> dict[str, Any]:
        """Return the plan with every default filled in, as it would be written."""
        return {
            "model": self.model,
            "endpoint": self.endpoint,
            "prompts": None if self.prompts is None else vars(self.prompts).copy(),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "confidence": self.confidence,
            "min_seconds_per_point": self.min_seconds_per_point,
            "max_seconds_per_point": self.max_seconds_per_point,
            "stall_timeout_s": self.stall_timeout_s,
            "temperature": self.temperature,
            "seed": self.seed,
            "client_processes": self.client_processes,
            "points": [{**point.load(), **{one.name: one.written() for one in point.limits}} for point in self.points],
            "correctness": self.correctness.as_dict(),
            "sanity": vars(self.sanity).copy(),
            "require": dict(self.require),
            "default_limits": self.default_limits,
        }

    def with_default_limits(self, promoted: Collection[int | str | None], *, tp_size: int | None) -> GatePlan:
        """Return the plan with a limit at each point where it names none anywhere and does not say that this is meant.

        ``promoted`` are the loads (concurrencies, or rates) at which the promoted release has a figure under the same conditions.
        """
        if self.default_limits != "auto" or any(point.limits for point in self.points):
            return self

        def filled(point: Point) -> Point:
            concurrency = point.concurrency if point.rate is None else None
            chosen = default_limit(promoted=point.key in promoted, concurrency=concurrency, tp_size=tp_size)
            return replace(point, limits=(chosen,))

        return replace(self, points=tuple(map(filled, self.points)))


def _point(raw: Any, where: str, output_tokens: int) -> Point:
    if not isinstance(raw, Mapping):
        raise InferopsError(f"{raw!r} is not a point", where=where, do="write {concurrency: 16, min_output_tokens_per_s: 148.5}")
    read.refuse_unknown(raw, (*LOAD_KEYS, *LIMITS), where, "limit of the gate")
    limits = tuple(limit(name, raw[name], where) for name in raw if name not in LOAD_KEYS and raw[name] is not None)
    if raw.get("rate") is not None:
        return _open_point(raw, limits, where, output_tokens)
    if raw.get("concurrency") is None:
        raise InferopsError("a point has neither concurrency nor rate", where=where, do="add concurrency: 1")
    for key in ("arrivals", "max_in_flight"):
        if raw.get(key) is not None:
            raise InferopsError(
                f"{key} needs a rate", where=f"{where}.{key}", do="add rate: 2 (requests per second), or leave it out"
            )
    return Point(concurrency=read.whole(raw, "concurrency", 1, least=1, where=where), limits=limits)


def _open_point(raw: Mapping[str, Any], limits: tuple[Limit, ...], where: str, output_tokens: int) -> Point:
    if raw.get("concurrency") is not None:
        raise InferopsError(
            "a point has both concurrency and rate",
            where=where,
            why="the first keeps so many requests in flight, the second lets them arrive by a schedule",
            do="make two points of it; max_in_flight bounds an arrival rate",
        )
    rate = read.checked_number(raw["rate"], f"{where}.rate", low=0.001, high=100_000)
    for one in limits:
        if one.name == "min_roofline_ratio":
            raise InferopsError(
                "min_roofline_ratio says nothing at an arrival rate",
                where=f"{where}.{one.name}",
                why="the throughput is what arrives, not what the server could give",
                do="limit a latency or min_goodput_ratio, or use a point with concurrency",
            )
        if one.name == "min_output_tokens_per_s" and one.value > rate * output_tokens:
            raise InferopsError(
                f"{one.value:g} tok/s cannot come of {rate:g} requests/s with {output_tokens} tokens each",
                where=f"{where}.{one.name}",
                do=f"limit it below {rate * output_tokens:g}, or raise the rate",
            )
    return Point(
        concurrency=read.whole(raw, "max_in_flight", MOST_IN_FLIGHT, least=1, where=where),
        limits=limits,
        rate=rate,
        arrivals=read.choice(raw, "arrivals", ARRIVALS[0], ARRIVALS, where=where),
    )


def _requirements(raw: Any) -> dict[str, float]:
    values = read.section(raw, REQUIREMENTS, "plan.require", "requirement")
    asked = [name for name in values if values[name] is not None]
    return {name: read.number(values, name, 0.0, low=0, high=1, where="plan.require") for name in asked}
