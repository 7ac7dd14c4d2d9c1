# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a promoted release was seen to do in its gate: the figures that a running server is held against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..release.host import Host


def figures(host: Host, record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the figures of a gate record; what its result does not tell is None. None without a record.

    ``power_w`` is the mean of all cards, ``eager_ratio`` the share of decode passes without a graph.
    """
    if not record:
        return None
    points = [
        {"concurrency": point["concurrency"], "output_tokens_per_s": point["output_tokens_per_s"]}
        for point in record.get("points") or []
        if point.get("concurrency") and point.get("output_tokens_per_s") is not None
    ]
    result = _result(host, record)
    power = [card["power_w"]["mean"] for card in result.get("gpus") or [] if (card.get("power_w") or {}).get("mean") is not None]
    passes = ((result.get("engine") or {}).get("graph_passes") or {}).get("decode") or {}
    counts = [passes.get("graph"), passes.get("eager")]
    known = [count for count in counts if count is not None]
    return {
        "points": sorted(points, key=lambda point: float(point["concurrency"])),
        "gate_t": record.get("t"),
        "power_w": round(sum(power) / len(power), 1) if power else None,
        "eager_ratio": round(known[1] / sum(known), 4) if len(known) == 2 and sum(known) else None,
    }


def _result(host: Host, record: Mapping[str, Any]) -> dict[str, Any]:
    text = host.read(Path(str(record.get("folder"))) / "result.json")
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
