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
from .report_beside import Beside, CardSeries, HostSeries
from .report_format import mappings, number
from .report_series import PointSeries

VERDICTS = ("pass", "fail", "inconclusive")


@dataclass
class ResultFolder:
    """Everything a report shows, already cut down to what may be shown."""

    result: dict[str, Any]
    series: list[PointSeries] = field(default_factory=list)
    cards: list[CardSeries] = field(default_factory=list)
    host: HostSeries = field(default_factory=HostSeries)
    progress: list[str] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return self.result.get("verdict") in VERDICTS and self.result.get("finished") is not False

    @property
    def verdict(self) -> str:
        return str(self.result["verdict"]) if self.finished else "unfinished"

    @property
    def points(self) -> list[Mapping[str, Any]]:
        return mappings(self.result.get("points"))

    def point(self, series: PointSeries) -> Mapping[str, Any]:
        """Return the figures of the point that a series belongs to; empty when the run ended before it had any."""
        return self.points[series.index] if 0 <= series.index < len(self.points) else {"concurrency": series.concurrency}

    def window_s(self, series: PointSeries) -> tuple[float, float] | None:
        """The measured window on the run's clock: as the result states it, else that of the requests which counted."""
        stated = self.point(series).get("window_ns")
        ends = [number(value) for value in stated] if isinstance(stated, list) else []
        if len(ends) == 2 and ends[0] is not None and ends[1] is not None and ends[0] < ends[1]:
            return ends[0] / NS_PER_S, ends[1] / NS_PER_S
        return series.counted_s


def read_folder(folder: Path) -> ResultFolder:
    """Read a result folder; files that are missing or cut off in the middle of a line leave their part empty."""
    if not folder.is_dir():
        raise InferopsError(
            f"{folder} is not a result folder", where=str(folder), do="name a folder that a gate wrote, with result.json in it"
        )
    result = _load(folder / "result.json")
    points: dict[int, PointSeries] = {}
    beside = Beside()
    for row in _lines(folder / "samples.jsonl"):
        index, planned = row.get("point"), number(row.get("planned_ns"))
        if isinstance(index, int) and planned is not None and 0 <= planned < 1e17:
            points.setdefault(index, PointSeries.empty(index, row, planned / NS_PER_S)).add(row)
        else:
            beside.add(row)
    for row in _lines(folder / "gpu.jsonl"):  # Older runs kept the cards' readings in a file of their own.
        beside.add(row)
    progress = [line["text"] for line in _lines(folder / "progress.jsonl") if isinstance(line.get("text"), str)]
    if not result and not points and not progress:
        raise InferopsError(
            f"{folder} holds no gate result",
            where=str(folder),
            why="there is no readable result.json, samples.jsonl or progress.jsonl in it",
            do="name a folder that a gate wrote",
        )
    series = [points[index] for index in sorted(points)]
    return ResultFolder(result=result, series=series, cards=beside.cards(), host=beside.host(), progress=progress)


def _load(path: Path) -> dict[str, Any]:
    try:
        data = _parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
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
                row = _parsed(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def _parsed(text: str) -> Any:
    """NaN and Infinity, which Python writes and reads though JSON has none, are absent."""
    return json.loads(text, parse_constant=lambda dummy: None)
