"""A controller with a Python this machine lacks: that of another Debian, in a folder that sees this machine's files.

It is no container of its own: it shares network, processes, home and cache with the machine, so that the tests inside reach the
test hosts; only starting hosts is left to the machine (`tests/lab/lab` steps out again).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from .image import rootfs
from .places import REPOSITORY, cache, locked
from .shell import Step, run

# The Debian whose own Python runs that ansible-core.
SUITES = {"newest": "trixie", "oldest": "bookworm"}
PACKAGES = (
    "python3,python3-venv,python3-dev,git,gcc,libc6-dev,openssh-client,ca-certificates,curl,make,procps,util-linux,"
    "rsync,rclone,prometheus"
)
# Name of the variable that tells `lab`, inside, the process of the machine whose files and mounts to step out to.
OUTSIDE = "INFEROPS_LAB_OUTSIDE"
SHARED = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/tmp",
    "/opt",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
)


def folder(core: str) -> Path:
    """Return the unpacked root file system, made once."""
    suite = SUITES[core]
    tar = rootfs(suite, PACKAGES)
    root = cache("controller", tar.stem)
    with locked("controller"):
        if not (root / ".complete").exists():
            with Step(f"unpacking the {suite} controller"):
                shutil.rmtree(root, ignore_errors=True)
                root.mkdir(parents=True)
                run(["tar", "-xpf", tar, "-C", root, "--exclude=./dev/*"])
                (root / ".complete").touch()
    return root


def shared_paths() -> list[Path]:
    """Return what the controller sees of the machine, outer folders before inner ones."""
    paths = {Path(p) for p in SHARED} | {Path.home(), REPOSITORY, cache("x").parent}
    return sorted(path for path in paths if path.exists())


def script(root: Path, words: Sequence[str | Path], cwd: Path) -> str:
    """Return the shell script that mounts what is shared, in a mount namespace of its own, and runs the words inside."""
    lines = ["set -e", "mount --make-rprivate /", f"mount --bind {shlex.quote(str(root))} {shlex.quote(str(root))}"]
    for path in shared_paths():
        target = shlex.quote(f"{root}{path}")
        make = (
            f"mkdir -p {target}" if path.is_dir() else f"mkdir -p {shlex.quote(str(Path(f'{root}{path}').parent))}; : >> {target}"
        )
        lines += [make, f"mount --rbind {shlex.quote(str(path))} {target}"]
    inner = f"cd {shlex.quote(str(cwd))} && exec {shlex.join(map(str, words))}"
    lines.append(f"exec chroot {shlex.quote(str(root))} /bin/sh -c {shlex.quote(inner)}")
    return "\n".join(lines)


def call(core: str, words: Sequence[str | Path], *, cwd: Path = REPOSITORY, out: IO[str] | None = None) -> int:
    """Run a program inside the controller for a core, its output to `out` (default: passed through); return its status."""
    root = folder(core)
    env = {**os.environ, OUTSIDE: str(os.getpid()), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return subprocess.call(
        ["unshare", "--mount", "sh", "-c", script(root, words, cwd)], env=env, stdout=out, stderr=out and subprocess.STDOUT
    )


def step_out(script_path: Path, argv: Sequence[str]) -> None:
    """Inside a controller, start the same command among the machine's own files; elsewhere do nothing."""
    outside = os.environ.pop(OUTSIDE, None)
    if outside:
        os.execvp(
            "nsenter",
            [
                "nsenter",
                f"--mount=/proc/{outside}/ns/mnt",
                f"--root=/proc/{outside}/root",
                f"--wd=/proc/{outside}/cwd",
                str(script_path),
                *argv,
            ],
        )
