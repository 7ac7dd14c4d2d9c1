# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate plan: what load is put on, how long, and which limits must hold. Unknown keys are refused by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InferopsError

LATENCIES = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
RATE_LIMITS = ("min_output_tokens_per_s", "min_roofline_ratio", "min_ratio_to_promoted", "min_goodput_ratio")
LATENCY_LIMITS = tuple(f"max_{latency}_{rank}_ms" for latency in LATENCIES for rank in PERCENTILES)
LIMITS = RATE_LIMITS + LATENCY_LIMITS
REQUIREMENTS = ("decode_graph_pass_ratio", "prefill_graph_pass_ratio")
SANITY_KEYS = ("prompt", "expect", "max_tokens")
CORRECTNESS_KEYS = ("min_distinct_characters", "max_cached_tokens_ratio", "length_tolerance_ratio")
_LATENCY_LIMIT = re.compile(r"max_(ttft|tpot|itl|e2e)_(p50|p90|p99)_ms")


@dataclass(frozen=True)
class Limit:
    """One limit of one point; ``latency`` and ``rank`` are set for percentile limits alone."""

    name: str
    value: float
    latency: str | None = None
    rank: str | None = None


@dataclass(frozen=True)
class Point:
    """One concurrency with its limits; without limits it is observed."""

    concurrency: int
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Correctness:
    """What must be true of the answers for a figure to count."""

    min_distinct_characters: int = 4
    max_cached_tokens_ratio: float = 0.01
    length_tolerance_ratio: float = 0.05


@dataclass(frozen=True)
class Sanity:
    """A question with a known answer; without ``expect`` only garbage is refused."""

    prompt: str = "Name the seven days of the week, one per line."
    expect: str | None = None
    max_tokens: int = 64


@dataclass(frozen=True)
class GatePlan:
    """A validated plan. Defaults are documented in docs/metrics.md."""

    points: tuple[Point, ...]
    model: str | None = None
    input_tokens: int = 512
    output_tokens: int = 256
    confidence: float = 0.95
    min_seconds_per_point: float = 10.0
    max_seconds_per_point: float = 180.0
    stall_timeout_s: float = 60.0
    temperature: float = 1.0
    seed: int = 7
    correctness: Correctness = field(default_factory=Correctness)
    sanity: Sanity = field(default_factory=Sanity)
    require: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> GatePlan:
        """Return the plan for a mapping as written in YAML or JSON, or raise InferopsError naming the key."""
        if not isinstance(raw, Mapping):
            raise InferopsError("the gate plan is not a mapping", where="plan", do="write points: [{concurrency: 1}]")
        known = tuple(cls.__dataclass_fields__)
        _refuse_unknown(raw, known, "plan", "key of a gate plan")
        points = raw.get("points")
        if not isinstance(points, (list, tuple)) or not points:
            raise InferopsError("the gate plan has no points", where="plan.points", do="add at least points: [{concurrency: 1}]")
        plan = cls(
            points=tuple(_point(point, f"plan.points[{index}]") for index, point in enumerate(points)),
            model=_text(raw.get("model"), "plan.model"),
            input_tokens=_whole(raw, "input_tokens", cls.input_tokens, least=1),
            output_tokens=_whole(raw, "output_tokens", cls.output_tokens, least=2),
            confidence=_number(raw, "confidence", cls.confidence, low=0.5, high=0.9999),
            min_seconds_per_point=_number(raw, "min_seconds_per_point", cls.min_seconds_per_point, low=0, high=86400),
            max_seconds_per_point=_number(raw, "max_seconds_per_point", cls.max_seconds_per_point, low=0.1, high=86400),
            stall_timeout_s=_number(raw, "stall_timeout_s", cls.stall_timeout_s, low=0.05, high=3600),
            temperature=_number(raw, "temperature", cls.temperature, low=0, high=2),
            seed=_whole(raw, "seed", cls.seed, least=0),
            correctness=_correctness(raw.get("correctness")),
            sanity=_sanity(raw.get("sanity")),
            require=_requirements(raw.get("require")),
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
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "confidence": self.confidence,
            "min_seconds_per_point": self.min_seconds_per_point,
            "max_seconds_per_point": self.max_seconds_per_point,
            "stall_timeout_s": self.stall_timeout_s,
            "temperature": self.temperature,
            "seed": self.seed,
            "points": [
                {"concurrency": point.concurrency, **{limit.name: limit.value for limit in point.limits}} for point in self.points
            ],
            "correctness": vars(self.correctness).copy(),
            "sanity": vars(self.sanity).copy(),
            "require": dict(self.require),
        }


def _point(raw: Any, where: str) -> Point:
    if not isinstance(raw, Mapping):
        raise InferopsError(f"{raw!r} is not a point", where=where, do="write {concurrency: 16, min_output_tokens_per_s: 148.5}")
    _refuse_unknown(raw, ("concurrency", *LIMITS), where, "limit of the gate")
    if "concurrency" not in raw:
        raise InferopsError("a point has no concurrency", where=where, do="add concurrency: 1")
    limits = tuple(_limit(name, raw[name], where) for name in raw if name != "concurrency" and raw[name] is not None)
    return Point(concurrency=_whole(raw, "concurrency", 1, least=1, where=where), limits=limits)


def _limit(name: str, value: Any, where: str) -> Limit:
    number = _checked_number(value, f"{where}.{name}", low=0, high=1e12)
    match = _LATENCY_LIMIT.fullmatch(name)
    return Limit(name, number, *(match.groups() if match else ()))


def _correctness(raw: Any) -> Correctness:
    where = "plan.correctness"
    rules, default = _section(raw, CORRECTNESS_KEYS, where, "correctness rule"), Correctness()

    def share(key: str) -> float:
        return _number(rules, key, getattr(default, key), low=0, high=1, where=where)

    return Correctness(
        min_distinct_characters=_whole(rules, "min_distinct_characters", default.min_distinct_characters, least=1, where=where),
        max_cached_tokens_ratio=share("max_cached_tokens_ratio"),
        length_tolerance_ratio=share("length_tolerance_ratio"),
    )


def _sanity(raw: Any) -> Sanity:
    values = _section(raw, SANITY_KEYS, "plan.sanity", "key of the sanity probe")
    prompt = _text(values.get("prompt"), "plan.sanity.prompt")
    return Sanity(
        prompt=Sanity.prompt if prompt is None else prompt,
        expect=_text(values.get("expect"), "plan.sanity.expect"),
        max_tokens=_whole(values, "max_tokens", Sanity.max_tokens, least=1, where="plan.sanity"),
    )


def _requirements(raw: Any) -> dict[str, float]:
    values = _section(raw, REQUIREMENTS, "plan.require", "requirement")
    return {name: _number(values, name, 0.0, low=0, high=1, where="plan.require") for name in values}


def _section(raw: Any, known: Iterable[str], where: str, kind: str) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise InferopsError(f"{where} is not a mapping", where=where, do=f"use the keys {', '.join(known)}")
    _refuse_unknown(raw, known, where, kind)
    return raw


def _refuse_unknown(raw: Mapping[str, Any], known: Iterable[str], where: str, kind: str) -> None:
    names = tuple(known)
    for key in raw:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1, cutoff=0)
            raise InferopsError(
                f"{key} is not a {kind}", where=f"{where}.{key}", why=f"known: {', '.join(names)}", do=f"did you mean {near[0]}?"
            )


def _text(value: Any, where: str) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise InferopsError(f"{value!r} is not a non-empty text", where=where, do="quote it")
    return value


def _whole(raw: Mapping[str, Any], key: str, default: int, *, least: int, where: str = "plan") -> int:
    value = raw.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InferopsError(f"{key} {value!r} is not a whole number of at least {least}", where=f"{where}.{key}", do="correct it")
    return value


def _number(raw: Mapping[str, Any], key: str, default: float, *, low: float, high: float, where: str = "plan") -> float:
    value = raw.get(key)
    return default if value is None else _checked_number(value, f"{where}.{key}", low=low, high=high)


def _checked_number(value: Any, where: str, *, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InferopsError(f"{value!r} is not a number from {low:g} to {high:g}", where=where, do="correct it")
    return float(value)
