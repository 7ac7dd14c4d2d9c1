# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""inferops metrics: writes what the alerts read beside the engine's own metrics; started by a timer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..gate.nvml import THROTTLE_BITS, UNHEALTHY, NoNvmlError, Nvml
from ..release.host_real import RealHost
from ..release.store import STATE_DIR, UNIT_DIR, Store
from .exporter import samples, text


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    metrics = commands.add_parser("metrics", help="write metrics of an instance for the textfile collector of node_exporter")
    metrics.add_argument("--instance", required=True)
    metrics.add_argument("--host", required=True, help="what the label host says")
    metrics.add_argument("--out", metavar="FILE", help="where they go (default: shown)")
    metrics.add_argument("--state-dir", default=STATE_DIR)
    metrics.add_argument("--unit-dir", default=UNIT_DIR)
    metrics.set_defaults(run=run_metrics)


def run_metrics(namespace: argparse.Namespace) -> int:
    host = RealHost()
    store = Store(host, namespace.instance, namespace.state_dir, namespace.unit_dir)
    labels = {"host": namespace.host, "sglang_instance": namespace.instance}
    found = text(samples(host, store, cards()), labels)
    if namespace.out:
        host.write(Path(namespace.out), found)
    else:
        sys.stdout.write(found)
    return 0


def cards() -> list[dict[str, Any]]:
    """Return one reading per card, none where NVML does not answer."""
    try:
        nvml = Nvml()
    except NoNvmlError:
        return []
    found = []
    for index in range(len(nvml.handles)):
        reading = nvml.reading(index)
        reasons = reading["throttle"]
        bad = sorted(UNHEALTHY & set(THROTTLE_BITS.values()))
        throttled = None if reasons is None else {reason: reason in reasons for reason in bad}
        found.append({"index": index, "power_w": reading["power_w"], "throttled": throttled})
    nvml.close()
    return found
