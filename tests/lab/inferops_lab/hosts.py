"""Hosts: start, reach over ssh, run a command in, remove."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from _core.errors import InferopsError

from .image import image, public_key
from .places import cache
from .runtime import podman
from .shell import Step, run

LABEL = "inferops.lab"
# What a host needs beyond a container's defaults so that systemd can sandbox its services (else 226/NAMESPACE).
RIGHTS = (
    "--cap-add=SYS_ADMIN,SYS_PTRACE,NET_ADMIN,SYS_NICE",
    "--security-opt=seccomp=unconfined",
    "--security-opt=unmask=ALL",
    "--security-opt=apparmor=unconfined",
)
START_TIMEOUT_S = 120


def up(
    name: str,
    *,
    suite: str = "bookworm",
    publish: Sequence[str] = (),
    mounts: Sequence[str] = (),
    picture: str | None = None,
) -> None:
    """Start a fresh host, in place of one of the same name, and wait until systemd says that it runs and ssh lets us in."""
    picture = picture or image(suite)
    with Step(f"starting host {name}"):
        podman()(
            "run",
            "--detach",
            "--replace",
            f"--name={name}",
            f"--hostname={name}",
            f"--label={LABEL}=1",
            "--systemd=always",
            *RIGHTS,
            *(f"--publish={p}" for p in publish),
            *(f"--volume={m}" for m in (*default_mounts(), *mounts)),
            picture,
        )
        state = _settled_state(name)
        if state != "running":
            failed = exec_in(name, ["systemctl", "list-units", "--failed", "--no-legend", "--plain"], check=False)
            raise InferopsError(
                f"host {name} is {state or 'not up'}, not running",
                where=name,
                why=failed.strip() or None,
                do=f"tests/lab/lab exec {name} journalctl -b -p warning",
            )
        run([*ssh_argv(name), "true"], timeout_s=START_TIMEOUT_S)


def _settled_state(name: str) -> str:
    """Return what systemd says once it has finished to boot; it cannot be asked before its bus is there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        state = exec_in(name, ["systemctl", "is-system-running", "--wait"], check=False).strip()
        if state in {"running", "degraded", "maintenance", "stopping"}:
            return state
        time.sleep(0.2)
    return state


def default_mounts() -> list[str]:
    """Give the host what there is to install and to serve, read-only."""
    pairs = [(cache(name), f"/srv/{name}") for name in ("wheelhouse", "wheelhouse-cpu", "models")]
    for source, dummy in pairs:
        source.mkdir(exist_ok=True)
    return [f"{source}:{target}:ro" for source, target in pairs]


def down(names: Sequence[str]) -> None:
    if names:
        podman()("rm", "-f", "--ignore", "-t", "0", *names)


def running(*, everything: bool = False) -> list[str]:
    """Return the hosts that run, or with everything=True also those that stopped."""
    return podman()("ps", *(["--all"] if everything else []), "--filter", f"label={LABEL}=1", "--format", "{{.Names}}").split()


def address(name: str) -> str:
    found = json.loads(podman()("inspect", name))[0]["NetworkSettings"]
    addresses = [found.get("IPAddress"), *(net.get("IPAddress") for net in (found.get("Networks") or {}).values())]
    for candidate in addresses:
        if candidate:
            return str(candidate)
    raise InferopsError(f"host {name} has no address", where=name, do=f"tests/lab/lab up {name}")


def exec_in(name: str, command: Sequence[str], *, check: bool = True) -> str:
    """Run a command in a host without ssh; with check=False its output is returned whatever its status."""
    try:
        return podman()("exec", name, *command, timeout_s=START_TIMEOUT_S)
    except InferopsError as exc:
        if check:
            raise
        return str(exc.details.get("why") or "")


def ssh_options() -> list[str]:
    known = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    settings = (*known, "ControlMaster=auto", "ControlPersist=120s")
    return [word for setting in settings for word in ("-o", setting)]


def ssh_argv(name: str) -> list[str]:
    return ["ssh", "-i", str(public_key().with_suffix("")), *ssh_options(), f"root@{address(name)}"]


def inventory(names: Sequence[str], *, group: str = "sglang") -> dict[str, object]:
    """Return an inventory of these hosts: how to reach them and where they install from; all else is the site's."""
    reach = {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(public_key().with_suffix("")),
        "ansible_ssh_common_args": " ".join(ssh_options()),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    # Of the group, so that a site that installs something else says so in its own group_vars.
    install = {
        "sglang_engine_lock": str(cache("wheelhouse", "engine.lock")),
        "sglang_engine_wheelhouse": "/srv/wheelhouse",
        # Two thousand modules of which the stand-in needs a handful.
        "sglang_engine_compile": False,
        "sglang_release_tools_wheelhouse": "/srv/wheelhouse",
    }
    hosts = {name: {"ansible_host": address(name), **reach} for name in names}
    return {group: {"hosts": hosts, "vars": install}}


def write_inventory(path: Path, names: Sequence[str], *, group: str = "sglang") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(inventory(names, group=group), indent=2) + "\n")
    part.replace(path)
