"""What is on the host, seen without our own code: pointers, records, units, processes, and the gate's result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from inferops_lab import hosts

INSTANCE = "kimi"
PROMOTED_UNIT = f"sglang-{INSTANCE}.service"

# Runs on the host with its own Python; prints one JSON object.
PROBE = r"""
import json, pathlib, subprocess
root = pathlib.Path("/var/lib/inferops/INSTANCE")
def text(path):
    return path.read_text() if path.is_file() else None
def load(path):
    found = text(path)
    return json.loads(found) if found else None
def show(unit):
    names = ("ActiveState", "SubState", "MainPID", "NRestarts", "UnitFileState", "ActiveEnterTimestampMonotonic")
    words = ["systemctl", "show", unit, "--property", ",".join(names)]
    shown = subprocess.run(words, text=True, capture_output=True).stdout
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
units = {}
for path in sorted(pathlib.Path("/etc/systemd/system").glob("sglang-INSTANCE*")):
    if path.is_file():
        units[path.name] = {"text": path.read_text(), "mtime_ns": path.stat().st_mtime_ns, **show(path.name)}
gates = {}
for path in sorted(root.glob("releases/*/gate/**/result.json"), key=lambda p: p.stat().st_mtime_ns):
    gates[str(path.parent)] = {"release": path.relative_to(root / "releases").parts[0], "result": load(path)}
lines = (text(root / "history.jsonl") or "").splitlines()
print(json.dumps({
    "promoted": (text(root / "promoted") or "").strip() or None,
    "previous": (text(root / "previous") or "").strip() or None,
    "attempt": load(root / "attempt.json"),
    "history": [json.loads(line) for line in lines],
    "releases": sorted(p.name for p in root.glob("releases/*")),
    "checks": {p.parent.name: load(p) for p in root.glob("releases/*/check.json")},
    "units": units,
    "gates": gates,
    "engines": sorted(p.name for p in pathlib.Path("/opt/inferops/engines").glob("*")),
}))
"""


@dataclass(frozen=True)
class View:
    """One look at the host."""

    data: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def last_gate(self) -> tuple[str, dict[str, Any]] | None:
        """Return folder and record of the gate that ended last."""
        return next(reversed(self.gates.items()), None)

    @property
    def last_result(self) -> dict[str, Any] | None:
        """Return the result of the gate that ended last, when it wrote one."""
        return (self.last_gate or ("", {}))[1].get("result")

    def unit(self, name: str) -> dict[str, Any]:
        return dict(self.units.get(name, {}))

    def running(self) -> list[str]:
        """Return the services of the instance that run a process, without the front."""
        return [
            name
            for name, unit in self.units.items()
            if name.endswith(".service") and "-front" not in name and unit["ActiveState"] not in {"inactive", "failed"}
        ]

    def serving(self) -> str | None:
        """Return the release whose process runs, when exactly one does: its own unit's or that of the promoted copy."""
        names = self.running()
        if len(names) != 1:
            return None
        if names[0] == PROMOTED_UNIT:
            return str(self.promoted)
        return names[0].removeprefix(f"sglang-{INSTANCE}-").removesuffix(".service")

    def enabled(self) -> list[str]:
        return [name for name, unit in self.units.items() if unit["UnitFileState"] == "enabled" and "-front" not in name]


def look(host: str) -> View:
    return View(json.loads(hosts.exec_in(host, ["python3", "-c", PROBE.replace("INSTANCE", INSTANCE)])))
