#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Draw each cause of docs/diagnosis.md: one server in virtual time with the fault and the same one without it.

Run: .venv/bin/python benchmarks/diagnosis_pictures.py [CODE …]     writes docs/images/diagnosis/CODE.svg
Left: output throughput by requests in flight. Right: the figure by which the cause is known. Both out of what the gate's own
code made of the run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins" / "module_utils"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from _core.gate.charts import Scale, floor, grid, nice_ceiling, text
from _core.gate.report_format import escape
from diagnosis import CAUSES, healthy
from diagnosis_bed import ROOT, Bed

FOLDER = ROOT / "docs" / "images" / "diagnosis"
SEED = "pictures"
WIDTH, HEIGHT, TOP, PLOT = 860.0, 260.0, 78.0, 130.0
STYLE = """
svg{--page:#fff;--ink:#14181f;--soft:#5b6472;--faint:#e3e6eb;--rule:#d3d8e0;--with:#2f6fde;--without:#b4bcc8}
@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e9ecf1;--soft:#9aa4b2;--faint:#262c35;--rule:#343c48;
--with:#6ea2ff;--without:#5a6472}}
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--soft)}
.title{font-size:14px;font-weight:600;fill:var(--ink)}.page{fill:var(--page)}
.grid{stroke:var(--faint);fill:none}.axis{stroke:var(--rule);fill:none}
.with{fill:var(--with)}.without{fill:var(--without)}
"""
Figures = Mapping[str, float | None]
"""A value for each place of the axis; None: not measured there."""


@dataclass(frozen=True)
class Telling:
    """The figure by which a cause is known: ``read`` takes it out of a result."""

    title: str
    read: Callable[[Mapping[str, Any]], Figures]
    axis: str = "requests in flight"


def by_load(read: Callable[[Mapping[str, Any]], float | None]) -> Callable[[Mapping[str, Any]], Figures]:
    return lambda result: {f"{point['concurrency']}": read(point) for point in result["points"]}


def by_card(read: Callable[[Mapping[str, Any]], float | None], *, point: int = -1) -> Callable[[Mapping[str, Any]], Figures]:
    return lambda result: {f"{card['index']}": read(card) for card in result["points"][point]["gpus"]}


def by_stage(name: str) -> Callable[[Mapping[str, Any]], Figures]:
    return lambda result: {f"{rank}": 100 * share for rank, share in enumerate(result["points"][-1]["engine"][name])}


def per_cent(part: float | None, whole: float | None = 1.0) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def of_engine(part: str, whole: str | None = None) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda point: per_cent(point["engine"][part], 1.0 if whole is None else point["engine"][whole])


def as_graphs(point: Mapping[str, Any]) -> float | None:
    passes = point["engine"]["graph_passes"]["decode"]
    return per_cent(passes["graph"], passes["graph"] + passes["eager"])


def stood_still(point: Mapping[str, Any]) -> float | None:
    return per_cent((point["stalls"] or {}).get("ratio", 0.0))


def outside_engine(point: Mapping[str, Any]) -> float | None:
    inside, seen = point["engine"]["e2e_ms"], point["client"]["e2e_mean_ms"]
    return None if inside is None or seen is None else max(0.0, 100 * (1 - inside / seen))


BUSY_AT_ONE = Telling(
    "Busy share of cards with one request in flight, %", by_card(lambda card: 100 * card["utilization_ratio"], point=0), "card"
)
OF_BOUND = Telling("Share of the bound, %", by_load(lambda point: per_cent(point["bound_ratio"])))
TELLING = {
    "GATE-LAUNCH": Telling("TPOT p50, ms", by_load(lambda point: point["tpot_ms"]["p50"])),
    "GATE-EAGER": Telling("Decode passes run as graphs, %", by_load(as_graphs)),
    "GATE-FILL": Telling("Requests in a pass", by_load(lambda point: point["engine"]["decode_batch"])),
    "GATE-QUEUE": Telling("Time spent waiting for a place, %", by_load(of_engine("queue_ms", "e2e_ms"))),
    "GATE-KV": Telling("KV pool in use, %", by_load(of_engine("kv_used_ratio"))),
    "GATE-SLOW-STAGE": Telling("Busy share of cards, %", by_card(lambda card: 100 * card["utilization_ratio"]), "card"),
    "GATE-SLOW-HOP": BUSY_AT_ONE,
    "GATE-P2P": BUSY_AT_ONE,
    "GATE-COMPILE": Telling("Time in which the engine stood still, %", by_load(stood_still)),
    "GATE-THROTTLE": Telling("Time slowed down, %", by_card(lambda card: 100 * card["throttled_ratio"]), "card"),
    "GATE-PREFILL": Telling("Time to first token, % of the engine's time", by_load(of_engine("ttft_ms", "e2e_ms"))),
    "GATE-SCHEDULER": Telling("Time of stages beside their passes, %", by_stage("stage_host_ratio"), "stage"),
    "GATE-BACKEND": OF_BOUND,
    "GATE-CLIENT": Telling("Processor of the client, % busy", by_load(lambda point: per_cent(point["client"]["cpu_ratio"]))),
    "GATE-NETWORK": Telling("Time outside the engine, %", by_load(outside_engine)),
    "GATE-ROOFLINE": OF_BOUND,
}
SPEED = Telling("Output tok/s", by_load(lambda point: point["output_tokens_per_s"]))


def runs(code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results of one server with the fault and without; the fault must come first."""
    cause, change = next((name, change) for name, (change, codes) in CAUSES.items() if code in codes)
    chance = random.Random(f"{SEED}/{code}")
    server, load = healthy("continuous", chance)
    load = replace(load, concurrencies=(1, 8, 16), rounds=4)
    faulty = Bed(replace(server, **change(server, load, chance)), load).run()
    first = faulty["diagnosis"][0] if faulty["diagnosis"] else {"code": "nothing"}
    if first["code"] != code:
        raise SystemExit(f"{cause}: {first['code']} came first, not {code}")
    return faulty, Bed(server, load).run()


def bars(left: float, wide: float, telling: Telling, faulty: Figures, sound: Figures) -> str:
    known = [value for figures in (faulty, sound) for value in figures.values() if value is not None]
    ceiling = nice_ceiling(max(known, default=0.0) * 0.999)

    def y(value: float) -> float:
        return TOP + PLOT * (1 - value / ceiling)

    begin, end = left + 44, left + wide
    parts = [
        text(left, TOP - 18, telling.title, "title", "start"),
        grid(begin, end, [ceiling / 2, ceiling], y),
        floor(begin, end, y(0)),
    ]
    step = (end - begin) / len(faulty)
    for place, name in enumerate(faulty):
        middle = begin + step * (place + 0.5)
        thick = min(26.0, step * 0.36)
        parts.append(_bar(middle - thick, thick - 1, sound.get(name), y, "without"))
        parts.append(_bar(middle + 1, thick - 1, faulty[name], y, "with"))
        parts.append(text(middle, TOP + PLOT + 18, name))
    return "".join([*parts, text((begin + end) / 2, TOP + PLOT + 36, telling.axis)])


def _bar(x: float, wide: float, value: float | None, y: Scale, style: str) -> str:
    if value is None:
        return text(x + wide / 2, y(0) - 4, "–")
    return f'<rect class="{style}" x="{x:.1f}" y="{y(value):.1f}" width="{wide:.1f}" height="{max(0.5, y(0) - y(value)):.1f}"/>'


def picture(code: str, faulty: Mapping[str, Any], sound: Mapping[str, Any]) -> str:
    half = WIDTH / 2 - 36
    parts = [
        f'<rect class="page" width="{WIDTH:g}" height="{HEIGHT:g}"/>',
        *_legend(((24.0, "without", "without the fault"), (170.0, "with", f"with it: {code} is said first"))),
        bars(24, half, SPEED, SPEED.read(faulty), SPEED.read(sound)),
        bars(WIDTH / 2 + 12, half, TELLING[code], TELLING[code].read(faulty), TELLING[code].read(sound)),
    ]
    label = escape(f"{code}: {faulty['diagnosis'][0]['message']}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{label}">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _legend(entries: Sequence[tuple[float, str, str]]) -> list[str]:
    return [
        f'<rect class="{style}" x="{x:g}" y="16" width="12" height="12"/>' + text(x + 18, 26, words, anchor="start")
        for x, style, words in entries
    ]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for code in sys.argv[1:] or TELLING:
        (FOLDER / f"{code}.svg").write_text(picture(code, *runs(code)), encoding="utf-8")
        print(f"{FOLDER.relative_to(ROOT)}/{code}.svg")


if __name__ == "__main__":
    main()
