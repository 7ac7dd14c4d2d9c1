"""Setting the stage: what must be true before anything starts, then everything that can be made side by side."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from _core.errors import InferopsError
from inferops_lab import environment, hosts, image, machine, models, wheelhouse
from inferops_lab.places import REPOSITORY, cache
from inferops_lab.runtime import podman
from inferops_lab.shell import say

HOST = "demo"
FRONT_PORT = 8000


def front_port() -> int:
    return int(os.environ.get("INFEROPS_DEMO_PORT", FRONT_PORT))


def check_port(port: int) -> None:
    """Refuse a port that somebody else listens on; a host left from an earlier demo is removed first."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            raise InferopsError(
                f"port {port} on 127.0.0.1 is taken",
                why=os.strerror(exc.errno or 0),
                do=f"stop what listens there (ss -ltnp sport = :{port}), or give another one: INFEROPS_DEMO_PORT={port + 1}",
            ) from exc


def refuse_open_clone(folder: Path = REPOSITORY) -> None:
    if folder.stat().st_mode & 0o002:
        raise InferopsError(
            "the clone is writable by everybody, so ansible ignores its ansible.cfg", where=str(folder), do=f"chmod o-w {folder}"
        )


def prepare(*, real: bool) -> Path:
    """Check and make everything; return the Python that has Ansible. Downloads and builds run side by side."""
    if real:
        say_what_it_takes()
    machine.check_root()
    environment.check_venv()
    refuse_open_clone()
    machine.prepare()
    podman()
    hosts.down([HOST])
    check_port(front_port())
    results = side_by_side(
        lambda: environment.ensure(lock=environment.lock_for(sys.executable)),
        image.image,
        lambda: _installables(real=real),
    )
    return Path(str(results[0]))


def say_what_it_takes() -> None:
    """Tell download, room and time before the first byte comes."""
    held = wheelhouse.holds_cpu()
    download = "its wheels are here already" if held else "downloads 700 MB of wheels (hash by hash, kept for the next time)"
    say(f"SGLang itself on this machine's processor: {download}; needs 3 GiB of memory and about 8 minutes on two cores")


def _installables(*, real: bool) -> None:
    models.build()
    python = str(environment.create(cache("venv-pip")))
    wheelhouse.build(python)
    if real:
        models.build_tiny(wheelhouse.build_cpu(python))


def side_by_side(*jobs: Callable[[], object]) -> list[object]:
    """Run jobs in threads; wait for all; raise the first failure."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs]
        wait(running)
        return [job.result() for job in running]


def start_host() -> Path:
    """Start the host with its front published on loopback; return its inventory."""
    hosts.up(HOST, publish=[f"127.0.0.1:{front_port()}:{FRONT_PORT}"])
    path = cache("inventories", f"{HOST}.json")
    hosts.write_inventory(path, [HOST])
    return path
