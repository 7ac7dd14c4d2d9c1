"""This machine: what it lacks is installed when it can be, and named with the command when it cannot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from _core.errors import InferopsError

from .places import cache, locked
from .shell import Step, run

# program -> Debian packages that bring it
PROGRAMS = {
    "podman": ["podman", "netavark", "aardvark-dns", "iptables", "nftables"],
    "runc": ["runc"],
    "mmdebstrap": ["mmdebstrap"],
    "ssh": ["openssh-client"],
    "gcc": ["gcc", "libc6-dev"],
    "git": ["git"],
}
NEEDED_GIB = 5.0


def check_root() -> None:
    if os.geteuid() != 0:
        raise InferopsError(
            "the test host needs root: it runs systemd in a container with its own mounts",
            do="run the same command as root, for example: sudo tools/demo",
        )


def prepare(*, needed_gib: float = NEEDED_GIB) -> None:
    """Make sure that containers can be built and started here, or raise InferopsError with the command that helps."""
    check_root()
    check_disk(needed_gib)
    complete()


def complete() -> None:
    """Install what the lab calls and this machine lacks; where nothing is missing, nothing is done."""
    missing = [package for program, packages in PROGRAMS.items() if not shutil.which(program) for package in packages]
    if missing:
        install(missing)


def check_disk(needed_gib: float) -> None:
    folder = cache("x").parent
    free_gib = shutil.disk_usage(folder).free / 2**30
    if free_gib < needed_gib:
        raise InferopsError(
            f"{folder} has {free_gib:.1f} GiB free, {needed_gib:.1f} GiB are needed",
            where=str(folder),
            do="free some space, or point INFEROPS_CACHE to a folder on a larger disk",
        )


def install(packages: list[str]) -> None:
    command = "apt-get install -y --no-install-recommends " + " ".join(packages)
    if not shutil.which("apt-get"):
        raise InferopsError(
            "programs for the test host are missing and this machine has no apt-get",
            where=" ".join(packages),
            do="install podman, runc, mmdebstrap, gcc and an ssh client with this machine's package manager",
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with locked("apt"), Step(f"installing {' '.join(packages)}"):
        if not any(Path("/var/lib/apt/lists").glob("*Packages*")):
            run(["apt-get", "update", "-q"], env=quiet, do="make the machine's package sources reachable, then repeat")
        try:
            run(command.split(), env=quiet)
        except InferopsError:
            run(["apt-get", "update", "-q"], env=quiet, do="make the machine's package sources reachable, then repeat")
            run(command.split(), env=quiet, do=f"install them by hand: {command}")
