"""Names, types and label names of a Prometheus text: the shape of /metrics without its numbers."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"^([\w:]+)(?:\{(.*)\})? ")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Labels whose values are names of the protocol, not of the machine.
_KEPT_VALUES = {
    "mode",
    "phase",
    "cache_source",
    "engine_type",
    "pp_rank",
    "tp_rank",
    "moe_ep_rank",
    "stage",
    "category",
    "forward_mode",
}


def shape(text: str) -> list[dict[str, object]]:
    kinds: dict[str, str] = {}
    found: dict[str, dict[str, set[str]]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            kinds[name] = kind
        elif not line.startswith("#") and (match := _SAMPLE.match(line)):
            labels = found.setdefault(match[1], {})
            for key, value in _LABEL.findall(match[2] or ""):
                labels.setdefault(key, set()).add(value if key in _KEPT_VALUES else "*")
    rows = []
    for name, labels in sorted(found.items()):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        kind = kinds.get(name) or kinds.get(base) or "untyped"
        rows.append({"name": name, "kind": kind, "labels": {k: sorted(v) for k, v in sorted(labels.items())}})
    return rows
