# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sections of report.html that explain the figures: diagnosis, arguments, accepted findings, environment, assumptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .report_data import ResultFolder
from .report_format import ABSENT, escape, figure, mapping, mappings, percent, sentence, shown_arguments, texts
from .report_points import badge

GOOD_NEWS = ("GATE-HEADROOM",)
# Of result.environment only these are shown: it may hold anything a host knows.
ENVIRONMENT = (
    "host", "os", "kernel", "gpu_name", "gpu_count", "gpu_memory_mib", "driver_version", "cuda_version", "python_version",
    "collection_version", "client_version", "cpu_count",
)  # fmt: skip
PLAN = ("input_tokens", "output_tokens", "seed", "confidence", "min_seconds_per_point", "max_seconds_per_point", "temperature")


def diagnosis(folder: ResultFolder) -> str:
    """What the measurements say about the cause, with the numbers it rests on."""
    parts = []
    for item in mappings(folder.result.get("diagnosis")):
        evidence = mapping(item.get("evidence"))
        lists = {name: value for name, value in evidence.items() if isinstance(value, Mapping) and len(value) > 1}
        facts = "".join(
            f"<span>{escape(name)} <b>{escape(_short(value))}</b></span>" for name, value in evidence.items() if name not in lists
        )
        long = "".join(_details(name, value) for name, value in lists.items())
        style = " info" if item.get("code") in GOOD_NEWS else ""
        parts.append(
            f'<div class="found{style}"><h3>{escape(item.get("code"))}</h3>'
            f'<p class="say">{escape(sentence(item.get("message")))}</p>'
            f'<p><b>Do:</b> {escape(sentence(item.get("do")))}</p><div class="facts">{facts}</div>{long}</div>'
        )
    return f'<h2>Diagnosis, from evidence</h2><div class="panel">{"".join(parts)}</div>' if parts else ""


def _details(name: str, value: Mapping[str, Any]) -> str:
    """A list as long as there are cards, folded up."""
    rows = "".join(f"<li>{escape(key)}: {escape(_short(each))}</li>" for key, each in value.items())
    return f'<details class="note"><summary>{escape(name)}: {len(value)}</summary><ul>{rows}</ul></details>'


def arguments(folder: ResultFolder) -> str:
    """What was asked against what the running server resolved; differences first. Unlisted arguments are not printed."""
    resolved = shown_arguments(_flat(mapping(mapping(folder.result.get("engine")).get("resolved"))))
    asked = shown_arguments(_flat(mapping(folder.result.get("asked"))))
    if not resolved and not asked:
        return ""
    names = sorted(set(resolved) | set(asked), key=lambda name: (not _differs(name, asked, resolved), name not in asked, name))
    rows = "".join(
        f'<tr><td class="text"><code>{escape(name)}</code></td>'
        f'<td class="text">{_value(asked, name)}</td>'
        f'<td class="text{" off" if _differs(name, asked, resolved) else ""}">{_value(resolved, name)}</td></tr>'
        for name in names
    )
    different = sum(_differs(name, asked, resolved) for name in names)
    if not asked:
        said = "What was asked is not in this result; the values are those the server resolved."
    elif not resolved:
        said = "The server's resolved values were not read."
    else:
        said = f"{different} differ from what was asked." if different else "Every asked value is what the server resolved."
    return (
        f'<h2>Arguments</h2><div class="panel"><p>{said}</p>'
        f"<details{' open' if different else ''}><summary>{len(names)} arguments</summary>"
        '<table class="narrow" style="margin-top:12px"><thead><tr><th class="text">field</th><th class="text">asked</th>'
        f'<th class="text">resolved</th></tr></thead><tbody>{rows}</tbody></table></details></div>'
    )


def check_findings(folder: ResultFolder) -> str:
    """Findings of the argument check, and who accepted which with what reason."""
    rows = []
    for item in mappings(mapping(folder.result.get("check")).get("findings")):
        accepted = item.get("accepted")
        reason = accepted.get("reason") if isinstance(accepted, Mapping) else accepted
        level = f"{badge('accepted')} {escape(reason)}" if accepted else badge(item.get("level"))
        rows.append(
            f'<tr><td class="text code"><b>{escape(item.get("code"))}</b></td><td class="text">{escape(item.get("message"))}'
            f'<small>{escape(item.get("source") or "")}</small></td><td class="text">{level}</td></tr>'
        )
    if not rows:
        return ""
    return f'<h2>Argument check</h2><div class="panel"><table class="narrow"><tbody>{"".join(rows)}</tbody></table></div>'


def environment(folder: ResultFolder) -> str:
    result = folder.result
    engine, plan, host = (mapping(result.get(name)) for name in ("engine", "plan", "environment"))
    release = mapping(result.get("release"))
    names = sorted({str(gpu["name"]) for gpu in mappings(result.get("gpus")) if gpu.get("name")})
    passes = mapping(mapping(engine.get("graph_passes")).get("decode"))
    rows: list[tuple[str, Any]] = [
        ("SGLang", engine.get("version")),
        ("GPUs", f"{len(mappings(result.get('gpus')))} × {', '.join(names)}" if names else None),
        ("decode passes", f"{figure(passes.get('graph'))} as graph, {figure(passes.get('eager'))} eager" if passes else None),
        ("release", release.get("id")),
        ("instance", release.get("instance")),
        *((name.replace("_", " "), host.get(name)) for name in ENVIRONMENT),
        *(
            (name.replace("_", " "), percent(plan[name]) if name == "confidence" else _short(plan[name]))
            for name in PLAN
            if plan.get(name) is not None
        ),
        ("started", result.get("started_at")),
        ("ended", result.get("ended_at")),
    ]
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value not in (None, ""))
    return f'<h2>Environment and plan</h2><div class="panel"><dl>{cells}</dl></div>' if cells else ""


def assumptions(folder: ResultFolder) -> str:
    """What the figures rest on without having been measured here."""
    lines = texts(folder.result.get("assumed")) + texts(folder.result.get("notes"))
    if any(point.get("bound_tokens_per_s") is not None for point in folder.points):
        lines += [f"Bound: {line}." for line in texts(mapping(folder.result.get("bound")).get("assumptions"))]
    if any(item.get("code") == "GATE-LAUNCH" for item in mappings(folder.result.get("diagnosis"))):
        lines.append("20 to 25 kernel launches per decoder layer without graphs: an estimate, not a measurement.")
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return (
        f'<h2>Assumed, noted, not measured</h2><div class="panel"><ul style="margin:0;padding-left:20px">{items}</ul></div>'
        if items
        else ""
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _differs(name: str, asked: Mapping[str, Any], resolved: Mapping[str, Any]) -> bool:
    return name in asked and name in resolved and asked[name] != resolved[name]


def _value(values: Mapping[str, Any], name: str) -> str:
    return f"<code>{escape(json.dumps(values[name], ensure_ascii=False))}</code>" if name in values else ABSENT


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return figure(value)
    if isinstance(value, (list, tuple)):
        return " ".join(_short(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_short(item)}" for name, item in value.items())
    return ABSENT if value is None else str(value)
