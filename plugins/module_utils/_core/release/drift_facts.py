# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read on the host what drift is judged by. Changes nothing; what an unprivileged account may not read stays unknown."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..engine.host import driver_version
from ..engine.pins import installed
from ..errors import InferopsError
from . import kernels, services, unit_texts
from .adopt import server_process, unit_sha256
from .drift import Facts
from .found import take_apart
from .host import Host
from .redact import scrub
from .spec import ReleaseSpec
from .store import Store

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(\\|--hash|$)", re.MULTILINE)
LET_IN = ("admitted", "boot", "serving", "rolled_back", "gate_failed")
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def read(host: Host, store: Store, spec: ReleaseSpec) -> Facts:
    """Return the facts about a promoted release."""
    promoted = unit_texts.promoted_unit(spec.instance)
    # Whoever edits the promoted unit does not stop what runs in it.
    unit = services.serving_unit(host, spec, committed=True)
    shown = _shown(host, unit or spec.run_unit)
    pid = int(shown.get("MainPID") or 0) or None if unit else None
    record = store.gate_record(spec.id)
    site = Path(spec.engine["site_packages"] or "/nonexistent")
    words = _words(host, pid)
    cache = kernels.root_of(spec.env)
    return Facts(
        serving_unit=unit,
        pid=pid,
        texts=_texts(host, store, spec, promoted),
        drop_ins=() if spec.adopted else _drop_ins(host, {promoted, unit or spec.run_unit}),
        needs_reload={"yes": True, "no": False}.get(shown.get("NeedDaemonReload", "")),
        enabled=_shown(host, promoted).get("UnitFileState") if not spec.in_container else None,
        argv=words[1] if words else None,
        launch=words[0] if words and not spec.in_container else None,
        packages=packages(site),
        changed_files=changed_files(site),
        driver=driver_version(),
        driver_at_gate=_driver_of(host, record),
        config_differs=_config(host, spec),
        newer_weights=_newer(store, host, spec),
        gate_age_s=host.now() - float(record["t"]) if record else None,
        kernel_dir=str(cache) if cache else "",
        compiled=compiled_while_serving(store, spec),
    )


def compiled_while_serving(store: Store, spec: ReleaseSpec) -> tuple[str, ...] | None:
    """Return the kernels that were compiled since clients were let in; None where that cannot be seen.

    After a restart the server is ready before clients are let in, so what it compiles from then on counts.
    """
    ready = kernels.ready_at(spec.env, spec.instance)
    let_in = [event["t"] for event in store.history() if event.get("event") in LET_IN]
    if ready is None or not let_in:
        return None
    try:
        place = kernels.in_use(spec.env, spec.instance, lambda path: path.read_text(encoding="utf-8"))
        return tuple(place.compiled_since(max(ready, float(let_in[-1])))) if place else None
    except OSError:
        return None


def packages(site: Path) -> dict[str, tuple[str, str | None]] | None:
    """Return {package: (version in the lock, version there)} for those that differ; None without the lock's copy."""
    lock = next((folder / "inferops.lock" for folder in site.parents[:4] if (folder / "inferops.lock").is_file()), None)
    if lock is None:
        return None
    have = installed(site)
    pins = {
        re.sub(r"[-_.]+", "-", name).lower(): version for name, version, dummy in PIN.findall(lock.read_text(encoding="utf-8"))
    }
    return {name: (version, have.get(name)) for name, version in pins.items() if have.get(name) != version}


def changed_files(site: Path) -> tuple[str, ...] | None:
    """Return the files of SGLang that are not what its RECORD says; None where there is no RECORD."""
    record = next(site.glob("sglang-*.dist-info/RECORD"), None)
    if record is None:
        return None
    changed = []
    for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
        if len(row) == 3 and row[1].startswith("sha256=") and not row[0].endswith(".pyc"):
            try:
                content = (site / row[0]).read_bytes()
            except OSError:
                changed.append(f"{row[0]} (gone)")
                continue
            if base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() != row[1][7:]:
                changed.append(row[0])
    return tuple(changed)


def _shown(host: Host, unit: str) -> dict[str, str]:
    answer = host.systemctl("show", "-p", "MainPID,UnitFileState,DropInPaths,NeedDaemonReload", unit)
    return dict(line.split("=", 1) for line in answer.output.splitlines() if "=" in line)


def _drop_ins(host: Host, units: Iterable[str]) -> tuple[str, ...]:
    """Return what was added to these units; a drop-in for every service is the system's own."""
    paths = {path for unit in units for path in _shown(host, unit).get("DropInPaths", "").split()}
    return tuple(sorted(path for path in paths if "/service.d/" not in path))


def _texts(host: Host, store: Store, spec: ReleaseSpec, promoted: str) -> dict[str, tuple[str | None, str | None]]:
    place = store.defined_by(promoted, container=spec.in_container)
    pairs: dict[str, tuple[str | None, str | None]] = {str(place): (spec.unit_text, host.read(place))}
    if spec.adopted:
        now = unit_sha256(host, spec.run_unit)
        pairs[spec.run_unit] = (str(spec.adopted.get("text_sha256")), now)
        return pairs
    own = store.defined_by(spec.run_unit, container=spec.in_container)
    pairs[str(own)] = (unit_texts.run_unit_text(spec), host.read(own))
    return pairs


def _words(host: Host, pid: int | None) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    if pid is None:
        return None
    try:
        dummy, words = server_process(host, pid)
        found = take_apart(words, {})
    except InferopsError:
        return None
    # Behind our wrapper the engine's words begin after its own "--".
    return found.launch, tuple(scrub(word) for word in found.argv)


def _driver_of(host: Host, record: Mapping[str, Any] | None) -> str | None:
    text = host.read(Path(str(record["folder"])) / "result.json") if record and record.get("folder") else None
    found = re.search(r'"driver_version": ?"([^"]+)"', text or "")
    return found[1] if found else None


def _config(host: Host, spec: ReleaseSpec) -> tuple[str, ...] | None:
    wanted = spec.gate_context.get("model_config")
    text = host.read(Path(spec.model["path"]) / "config.json")
    if not isinstance(wanted, dict):
        return None
    try:
        found = json.loads(text or "")
    except ValueError:
        return ("it is gone or no JSON",)
    keys = [key for key in wanted if found.get(key) != wanted[key]]
    return tuple(f"{key} is {json.dumps(found.get(key))[:60]}" for key in keys)


def _newer(store: Store, host: Host, spec: ReleaseSpec) -> tuple[str, ...] | None:
    """Return weights written after the last promotion; None where the folder or the event is not there."""
    times = [event["t"] for event in store.history() if event.get("event") == "promoted" and event.get("release") == spec.id]
    folder = Path(spec.model["path"])
    if not times or not folder.is_dir():
        return None
    files = [path for pattern in WEIGHTS for path in sorted(folder.glob(pattern))]
    return tuple(path.name for path in files if path.stat().st_mtime > float(times[-1]))
