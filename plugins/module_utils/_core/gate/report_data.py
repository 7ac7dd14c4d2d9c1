# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads a result folder, whole or left behind by a killed run, into what the reports draw. Never raises on content."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from ..units import NS_PER_S
from .diagnosis_evidence import number

VERDICTS = ("pass", "fail", "inconclusive")
TIMELINE_BUCKETS = 60
GPU_BUCKETS = 120


@dataclass
class Timeline:
    """Tokens per second of one point over time: (seconds since the point began, tok/s), and the measured window."""

    concurrency: int
    seconds: list[float] = field(default_factory=list)
    tokens_per_s: list[float] = field(default_factory=list)
    window_s: tuple[float, float] | None = None


@dataclass
class PointSamples:
    """Per-request latencies of one point, requests of the measured window only."""

    concurrency: int
    ttft_ms: list[float] = field(default_factory=list)
    tpot_ms: list[float] = field(default_factory=list)


@dataclass
class CardSeries:
    """One card over the run: seconds since the run began, power and busy share (None where not read)."""

    index: int
    seconds: list[float] = field(default_factory=list)
    power_w: list[float | None] = field(default_factory=list)
    utilization_ratio: list[float | None] = field(default_factory=list)


@dataclass
class ResultFolder:
    """Everything a report shows, already cut down to what may be shown."""

    result: dict[str, Any]
    timelines: list[Timeline]
    samples: list[PointSamples]
    cards: list[CardSeries]
    spans: list[tuple[int, float, float]]
    """(concurrency, first second, last second) of each point, on the run's clock."""
    progress: list[str]

    @property
    def finished(self) -> bool:
        return self.result.get("verdict") in VERDICTS and self.result.get("finished") is not False

    @property
    def points(self) -> list[Mapping[str, Any]]:
        return mappings(self.result.get("points"))


def read_folder(folder: Path) -> ResultFolder:
    """Read a result folder; files that are missing or cut off in the middle of a line leave their part empty."""
    if not folder.is_dir():
        raise InferopsError(
            f"{folder} is not a result folder", where=str(folder), do="name a folder that a gate wrote, with result.json in it"
        )
    result = _load(folder / "result.json")
    samples = list(_lines(folder / "samples.jsonl"))
    gpu = list(_lines(folder / "gpu.jsonl"))
    progress = [str(line["text"]) for line in _lines(folder / "progress.jsonl") if isinstance(line.get("text"), str)]
    if not result and not samples and not progress:
        raise InferopsError(
            f"{folder} holds no gate result",
            where=str(folder),
            why="there is no readable result.json, samples.jsonl or progress.jsonl in it",
            do="name a folder that a gate wrote",
        )
    points = mappings(result.get("points"))
    groups = _by_point(samples)
    return ResultFolder(
        result=result,
        timelines=[_timeline(rows, _window(points, index, rows)) for index, rows in groups.items()],
        samples=[_latencies(rows) for rows in groups.values()],
        cards=_cards(gpu),
        spans=[_span(rows) for rows in groups.values()],
        progress=progress,
    )


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list, nothing else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        handle = path.open(encoding="utf-8", errors="replace")
    except OSError:
        return
    with handle:
        for line in handle:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def _by_point(samples: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in samples:
        if isinstance(row.get("point"), int) and number(row.get("planned_ns")) is not None:
            groups.setdefault(row["point"], []).append(row)
    return dict(sorted(groups.items()))


def _ends(row: Mapping[str, Any]) -> float:
    """The latest moment a request is known to have been alive [ns]."""
    known = [number(row.get(key)) for key in ("planned_ns", "first_ns", "end_ns")]
    known += [number(chunk[0]) for chunk in _chunks(row)[-1:]]
    return max(value for value in known if value is not None)


def _chunks(row: Mapping[str, Any]) -> list[list[float]]:
    chunks = row.get("chunks")
    if not isinstance(chunks, list):
        return []
    return [
        chunk
        for chunk in chunks
        if isinstance(chunk, list) and len(chunk) == 2 and all(number(item) is not None for item in chunk)
    ]


def _span(rows: list[dict[str, Any]]) -> tuple[int, float, float]:
    start = min(row["planned_ns"] for row in rows)
    return int(rows[0].get("concurrency") or 0), start / NS_PER_S, max(_ends(row) for row in rows) / NS_PER_S


def _window(points: list[Mapping[str, Any]], index: int, rows: list[dict[str, Any]]) -> tuple[float, float] | None:
    """The measured window on the run's clock [s]: as the result states it, else from the requests it counted."""
    point = points[index] if index < len(points) else {}
    stated = point.get("window_ns")
    if isinstance(stated, list) and len(stated) == 2 and all(number(value) is not None for value in stated):
        return stated[0] / NS_PER_S, stated[1] / NS_PER_S
    counted = [row for row in rows if row.get("phase") == "window"]
    if not counted:
        return None
    start, length = min(row["planned_ns"] for row in counted) / NS_PER_S, number(point.get("window_s"))
    return start, start + length if length else max(_ends(row) for row in counted) / NS_PER_S


def _timeline(rows: list[dict[str, Any]], window: tuple[float, float] | None) -> Timeline:
    concurrency, start, end = _span(rows)
    line = Timeline(concurrency, window_s=None if window is None else (max(0.0, window[0] - start), max(0.0, window[1] - start)))
    if end <= start:
        return line
    width = (end - start) / TIMELINE_BUCKETS
    tokens = [0.0] * TIMELINE_BUCKETS
    for row in rows:
        for moment, count in _chunks(row):
            tokens[min(TIMELINE_BUCKETS - 1, max(0, int((moment / NS_PER_S - start) / width)))] += count
    line.seconds = [(bucket + 0.5) * width for bucket in range(TIMELINE_BUCKETS)]
    line.tokens_per_s = [count / width for count in tokens]
    return line


def _latencies(rows: list[dict[str, Any]]) -> PointSamples:
    samples = PointSamples(int(rows[0].get("concurrency") or 0))
    for row in rows:
        if row.get("phase") == "window" and row.get("status") == "ok":
            for name in ("ttft_ms", "tpot_ms"):
                value = number(row.get(name))
                if value is not None:
                    getattr(samples, name).append(value)
    return samples


def _cards(rows: list[dict[str, Any]]) -> list[CardSeries]:
    cards: dict[int, CardSeries] = {}
    step = max(1, len(rows) // GPU_BUCKETS)
    for row in rows[::step]:
        moment = number(row.get("ns"))
        for gpu in mappings(row.get("gpus")):
            if moment is None or not isinstance(gpu.get("index"), int):
                continue
            card = cards.setdefault(gpu["index"], CardSeries(gpu["index"]))
            card.seconds.append(moment / NS_PER_S)
            card.power_w.append(number(gpu.get("power_w")))
            card.utilization_ratio.append(number(gpu.get("utilization_ratio")))
    return [cards[index] for index in sorted(cards)]
