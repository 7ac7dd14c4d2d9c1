"""Judging an act: statements about what the host, the records and the front show, each true or false with what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOLERANCE_RATIO = 0.03


@dataclass
class Judgement:
    """The statements of one act."""

    act: str
    statements: list[tuple[bool, str]] = field(default_factory=list)
    figures: dict[int, float] = field(default_factory=dict)

    def expect(self, true: bool, statement: str, found: object = None) -> None:
        self.statements.append((bool(true), statement if true else f"{statement}; found: {found!r}"))

    def figure(self, result: Mapping[str, Any] | None, concurrency: int, wanted: float) -> None:
        """Expect a point of a gate's result within three per cent of a figure."""
        point = point_of(result, concurrency)
        value = point.get("output_tokens_per_s")
        near = value is not None and abs(value - wanted) <= TOLERANCE_RATIO * wanted
        self.expect(near, f"{wanted} tok/s at {concurrency}, within 3 %", value)

    def take_figures(self, result: Mapping[str, Any] | None) -> None:
        points = (result or {}).get("points", [])
        self.figures = {p["concurrency"]: p["output_tokens_per_s"] for p in points if p.get("output_tokens_per_s") is not None}

    @property
    def holds(self) -> bool:
        return bool(self.statements) and all(true for true, dummy in self.statements)

    def text(self) -> str:
        return "\n".join(f"  {'ok ' if true else 'BAD'} {statement}" for true, statement in self.statements)


def point_of(result: Mapping[str, Any] | None, concurrency: int) -> dict[str, Any]:
    return next((dict(p) for p in (result or {}).get("points", []) if p["concurrency"] == concurrency), {})


def codes(result: Mapping[str, Any] | None) -> list[str]:
    return [entry["code"] for entry in (result or {}).get("diagnosis", [])]


def mean_power_w(result: Mapping[str, Any] | None) -> float | None:
    """Return the mean power of a card over the run [W], or None without a reading."""
    readings = [
        gpu["power_w"]["mean"] for gpu in (result or {}).get("gpus", []) if gpu.get("power_w", {}).get("mean") is not None
    ]
    return sum(readings) / len(readings) if readings else None
