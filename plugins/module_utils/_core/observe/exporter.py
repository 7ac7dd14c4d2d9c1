# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the engine's own metrics do not tell, as text for the textfile collector of node_exporter: release, gate, drift and cards.

What is not known is absent, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..release import admission, services
from ..release.drift_facts import compiled_while_serving
from ..release.host import Host
from ..release.store import Store
from .figures import figures

Sample = tuple[str, Mapping[str, str], float]
# Name: kind and meaning. The alerts read these; a name that is not here is not written.
NAMES = {
    "inferops_metrics_timestamp_seconds": ("gauge", "When this was written."),
    "inferops_promoted_info": ("gauge", "The promoted release, 1."),
    "inferops_admitted": ("gauge", "Whether the promoted release runs and clients are let in."),
    "inferops_gate_timestamp_seconds": ("gauge", "When the promoted release passed its gate."),
    "inferops_gate_output_tokens_per_s": ("gauge", "Output throughput in that gate."),
    "inferops_restarts_total": ("counter", "Restarts of the unit that serves, since it was started."),
    "inferops_drift": ("gauge", "Whether the host differs from what was promoted, by kind."),
    "inferops_kernels_compiled_total": ("counter", "Kernels compiled by the server since clients were let in."),
    "inferops_xid_errors_total": ("counter", "Xid errors in the kernel's log, since boot."),
    "inferops_gpu_power_watts": ("gauge", "Power a card draws."),
    "inferops_gpu_throttled": ("gauge", "Whether a card is slowed down, by reason."),
}


def samples(host: Host, store: Store, cards: Sequence[Mapping[str, Any]]) -> Iterator[Sample]:
    """Return what is known now; ``cards`` are readings of NVML, none where there is none."""
    yield "inferops_metrics_timestamp_seconds", {}, host.now()
    promoted = store.pointer("promoted")
    if promoted:
        yield "inferops_promoted_info", {"release": promoted}, 1
        spec = store.spec(promoted)
        committed = store.committed(promoted)
        unit = services.serving_unit(host, spec, committed=committed)
        yield "inferops_admitted", {}, float(unit is not None and admission.is_open(host, spec))
        yield "inferops_drift", {"kind": "unit"}, float(not committed)
        if unit is not None:
            yield "inferops_restarts_total", {}, services.show(host, unit).restarts
        compiled = compiled_while_serving(store, spec)
        if compiled is not None:
            yield "inferops_kernels_compiled_total", {}, len(compiled)
        found = figures(host, store.gate_record(promoted))
        if found:
            if found["gate_t"] is not None:
                yield "inferops_gate_timestamp_seconds", {}, float(found["gate_t"])
            for point in found["points"]:
                labels = {"concurrency": str(point["concurrency"])}
                yield "inferops_gate_output_tokens_per_s", labels, float(point["output_tokens_per_s"])
    kernel = host.run(["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output=cat", "--grep=NVRM: Xid"], 20)
    # 1 without output: the log was read, and nothing is in it.
    if kernel.code == 0 or (kernel.code == 1 and not kernel.output.strip()):
        yield "inferops_xid_errors_total", {}, len(kernel.output.splitlines())
    for card in cards:
        labels = {"gpu": str(card["index"])}
        if card.get("power_w") is not None:
            yield "inferops_gpu_power_watts", labels, float(card["power_w"])
        for reason, on in sorted((card.get("throttled") or {}).items()):
            yield "inferops_gpu_throttled", {**labels, "reason": reason}, float(on)


def text(found: Iterator[Sample], labels: Mapping[str, str]) -> str:
    """Return samples in the text format, each with the labels given."""
    by_name: dict[str, list[str]] = {}
    for name, own, value in found:
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted({**labels, **own}.items()))
        by_name.setdefault(name, []).append(f"{name}{{{inside}}} {value:.15g}")
    lines = []
    for name, rows in by_name.items():
        kind, meaning = NAMES[name]
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *rows]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
