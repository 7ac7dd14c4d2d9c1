# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take over a server that runs in a unit of somebody else's: read it, keep it as the first release, touch no process.

The release's run unit is the old unit itself. The promoted unit is a stub that only pulls it in, so that boot starts the same
server as ever, and the first upgrade replaces the stub by one write like any other promotion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from . import unit_texts
from .found import Found, take_apart
from .host import Host, LockHeldError
from .spec import RELEASE_MARK, ReleaseSpec, digest
from .store import Store

CONFIG_DIR = "/etc/inferops"
SHOWN = "LoadState,ActiveState,UnitFileState,MainPID,FragmentPath"
# The interpreter is only asked where its packages are.
PURELIB = "import sysconfig; print(sysconfig.get_paths()['purelib'])"


@dataclass(frozen=True)
class Running:
    """A unit that runs a server, as systemd and /proc show it."""

    unit: str
    state: Mapping[str, str]
    pid: int
    text_sha256: str
    python: str
    site_packages: str
    version: str
    found: Found


def read(host: Host, unit: str) -> Running:
    """Return what runs in a unit; raise InferopsError where it cannot be adopted. Changes nothing."""
    name = unit if unit.endswith(".service") else f"{unit}.service"
    shown = host.systemctl("show", "-p", SHOWN, name).output
    state = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    main = int(state.get("MainPID") or 0)
    if state.get("LoadState") not in (None, "loaded") or not main:
        raise InferopsError(
            f"{name} runs no process",
            where=f"systemctl show {name}: {state.get('LoadState', '?')}, {state.get('ActiveState', '?')}",
            why="what runs is adopted, since only that shows what the server really is",
            do="start it and wait until it serves, or name another unit: systemctl list-units --type=service",
        )
    if state.get("UnitFileState") in ("generated", "transient"):
        raise InferopsError(
            f"{name} is made by a generator",
            where=state.get("FragmentPath") or name,
            why="systemd cannot take it out of the boot, so after an upgrade two servers would start",
            do="give the text of its quadlet to sglang_release_adopt_command for the inventory, and stop it when you deploy",
        )
    pid, words = server_process(host, main)
    env = dict(item.split("=", 1) for item in _split0(host, pid, "environ") if "=" in item)
    found = take_apart(words, env)
    python, site, version = ("", "", "") if found.image else _engine(host, found, pid)
    return Running(name, state, pid, unit_sha256(host, name), python, site, version, found)


def unit_sha256(host: Host, unit: str) -> str:
    """Return the fingerprint of a unit with its drop-ins, as systemd reads them."""
    return digest(host.systemctl("cat", unit).output)


def spec_dict(running: Running, *, instance: str, tools: Mapping[str, str], secrets_file: str | None) -> dict[str, Any]:
    """Return the release that a running unit is."""
    found = running.found
    return {
        "instance": instance,
        "engine": {
            "version": running.version or "unknown",
            "lock_sha256": digest(["adopted", running.python, running.version, found.image]),
            "python": running.python,
            "site_packages": running.site_packages,
            "launch": list(found.launch),
        },
        "model": {"path": found.model_path, "served_name": found.served_name, "revision": None},
        "argv": list(found.argv),
        "env": dict(found.env),
        "secrets_file": secrets_file,
        "unit": stub(instance, running.unit),
        "port": found.port,
        "front": {"kind": "none"},
        "plan": {"points": []},
        "tools": dict(tools),
        "adopted": {"unit": running.unit, "text_sha256": running.text_sha256},
    }


def stub(instance: str, unit: str) -> str:
    return f"""\
# Written by inferops.sglang. The server was adopted: this only starts the unit it has always run in.
[Unit]
Description=SGLang instance {instance}, release {RELEASE_MARK}, adopted from {unit}
Wants={unit}
After={unit}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true

[Install]
WantedBy=multi-user.target
"""


def adopt(
    host: Host,
    store: Store,
    running: Running,
    *,
    tools: Mapping[str, str],
    owner: str,
    config_dir: str = CONFIG_DIR,
    check_mode: bool = False,
) -> dict[str, Any]:
    """Make a running unit the promoted release of an instance; return changed, release, message and texts by path."""
    if running.unit == unit_texts.promoted_unit(store.instance):
        raise InferopsError(
            f"{running.unit} has the name of our own promoted unit",
            where=f"sglang_service_instance: {store.instance}",
            why="an upgrade would overwrite the way back",
            do="choose another name for the instance",
        )
    secrets = running.found.secrets
    secrets_file = f"{config_dir}/{store.instance}/adopted.yaml" if secrets else None
    spec = ReleaseSpec.from_dict(spec_dict(running, instance=store.instance, tools=tools, secrets_file=secrets_file))
    promoted = store.pointer("promoted")
    if promoted is not None and promoted != spec.id:
        raise InferopsError(
            f"instance {store.instance} has a promoted release already: {promoted}",
            where=str(store.folder / "promoted"),
            why="adoption is for a server that nothing of ours has started"
            if not store.spec(promoted).adopted
            else f"{running.unit} was adopted as it was then, and is another now",
            do="run playbooks/drift.yml to see what differs, playbooks/upgrade.yml to change it",
        )
    if check_mode:
        return _result(host, store, spec, running, changed=promoted is None or not store.committed(spec.id))
    try:
        with host.lock(store.lock_path, owner):
            changed = _record(host, store, spec, running, secrets, owner)
    except LockHeldError as exc:
        raise InferopsError(f"another run holds instance {store.instance}: {exc}", where=str(store.lock_path)) from None
    return _result(host, store, spec, running, changed=changed)


def _record(host: Host, store: Store, spec: ReleaseSpec, running: Running, secrets: Mapping[str, str], owner: str) -> bool:
    """Write everything down; each step may be done already. No step starts or stops a process."""
    texts = store.texts(spec)
    texts[store.unit_path(unit_texts.promoted_unit(spec.instance))] = spec.unit_text
    stale = {path: text for path, text in texts.items() if host.read(path) != text}
    if spec.secrets_file and secrets:
        config = json.dumps({name.replace("_", "-"): value for name, value in secrets.items()}) + "\n"
        if host.read(Path(spec.secrets_file)) != config:
            host.write(Path(spec.secrets_file), config, 0o600)
    for path, text in stale.items():
        host.write(path, text)
    host.systemctl("daemon-reload")
    # Enabled first: power lost in between leaves both, and the stub starts the very unit that is enabled beside it.
    host.systemctl("enable", unit_texts.promoted_unit(spec.instance), unit_texts.runner_unit(spec.instance))
    if running.state.get("UnitFileState") == "enabled":
        host.systemctl("disable", running.unit)
    if store.pointer("promoted") == spec.id:
        return bool(stale)
    event = {
        "t": round(host.now(), 3),
        "event": "promoted",
        "kind": "adopt",
        "release": spec.id,
        "owner": owner,
        "previous": None,
    }
    if not any(known.get("release") == spec.id for known in store.history()):
        store.remember({**event, "model": spec.model["path"], "engine": spec.engine["version"], "adopted": running.unit})
    store.point("promoted", spec.id)
    return True


def _result(host: Host, store: Store, spec: ReleaseSpec, running: Running, *, changed: bool) -> dict[str, Any]:
    told = f"{running.unit} (pid {running.pid}) is release {spec.id} of instance {store.instance}; its process was not touched"
    return {"changed": changed, "release": spec.id, "message": told, "way_back": running.unit}


def server_process(host: Host, main: int) -> tuple[int, list[str]]:
    """Return pid and command line of the server: the main process, or the first of its children that is one."""
    waiting = [main]
    first: list[str] = []
    while waiting:
        pid = waiting.pop(0)
        words = _split0(host, pid, "cmdline")
        first = first or words
        try:
            take_apart(words, {})
        except InferopsError:
            children = host.read(Path(f"/proc/{pid}/task/{pid}/children")) or ""
            waiting += [int(child) for child in children.split()]
            continue
        return pid, words
    take_apart(first, {})
    raise InferopsError("the process ended while it was read", where=f"pid {main}")


def _engine(host: Host, found: Found, pid: int) -> tuple[str, str, str]:
    """Return interpreter, package folder and version of SGLang as the process has them; empty where unknown."""
    python = found.launch[0]
    if not python.startswith("/"):
        python = host.run(["readlink", f"/proc/{pid}/exe"], 10).output.strip()
    site = host.run([python, "-c", PURELIB], 60).output.strip()
    if not site.startswith("/") or "\n" in site:
        return python, "", ""
    names = host.names(Path(site))
    version = next((name.split("-")[1] for name in names if name.startswith("sglang-") and name.endswith(".dist-info")), "")
    return python, site, version.removesuffix(".dist-info")


def _split0(host: Host, pid: int, name: str) -> list[str]:
    try:
        text = host.read(Path(f"/proc/{pid}/{name}")) or ""
    except OSError as exc:
        raise InferopsError(f"/proc/{pid}/{name} cannot be read: {exc.strerror}", where=f"pid {pid}", do="become root") from exc
    return text.rstrip("\0").split("\0") if text else []
