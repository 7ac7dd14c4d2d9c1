"""The container runtime: which low-level runtime and cgroup manager work here is found by trying, once per machine."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from _core.errors import InferopsError

from . import machine
from .places import cache, digest, locked
from .shell import run, say

CANDIDATES = tuple((runtime, manager) for manager in ("systemd", "cgroupfs") for runtime in ("crun", "runc"))


@dataclass(frozen=True)
class Podman:
    """Podman with storage and settings of our own: nothing of the machine's own containers is seen or changed."""

    config: Path
    root: Path

    def __call__(self, *words: str | Path, timeout_s: float | None = None, stdin: str | None = None) -> str:
        return run(self.argv(*words), env=self.env, timeout_s=timeout_s, stdin=stdin)

    def argv(self, *words: str | Path) -> list[str]:
        return ["podman", "--root", str(self.root), "--runroot", str(self.run_root), *map(str, words)]

    @property
    def run_root(self) -> Path:
        """Return where mounts and locks live until the next boot; two caches never share one."""
        usual = Path.home() / ".cache" / "inferops" / "storage"
        return Path("/run/inferops-lab" if self.root == usual else f"/run/inferops-lab-{digest([str(self.root)])}")

    @property
    def env(self) -> dict[str, str]:
        return {"CONTAINERS_CONF": str(self.config), "PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}


def settings(runtime: str, manager: str, *, open_files: int) -> str:
    """Return the containers.conf; limits are those this process may hand on, since root may lack CAP_SYS_RESOURCE."""
    files = min(open_files, 1_048_576)
    return "\n".join(
        (
            "[engine]",
            f'runtime = "{runtime}"',
            f'cgroup_manager = "{manager}"',
            'events_logger = "file"',
            "[containers]",
            f'default_ulimits = ["nofile={files}:{files}", "nproc=32768:32768"]',
            'log_driver = "k8s-file"',
            "",
        )
    )


def _podman(text: str) -> Podman:
    config = cache("runtime", f"containers-{digest([text])}.conf")
    config.write_text(text)
    return Podman(config, cache("storage"))


@once
def podman() -> Podman:
    """Return the first combination that can run a program in a container; remembered in the cache per boot."""
    machine.complete()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memory = cache("runtime", "chosen.json")
    with locked("runtime"):
        if memory.exists() and (chosen := json.loads(memory.read_text())).get("boot") == boot and Path(chosen["config"]).exists():
            return Podman(Path(chosen["config"]), cache("storage"))
        errors: list[str] = []
        for runtime, manager in CANDIDATES:
            if not shutil.which(runtime) or (manager == "systemd" and not Path("/run/systemd/system").exists()):
                continue
            candidate = _podman(settings(runtime, manager, open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            try:
                _try(candidate)
            except InferopsError as exc:
                errors.append(f"{runtime}/{manager}: {(exc.details.get('why') or exc.what).splitlines()[-1]}")
                continue
            memory.write_text(json.dumps({"boot": boot, "config": str(candidate.config), "runtime": runtime, "manager": manager}))
            say(f"containers run with podman, {runtime}, {manager}")
            return candidate
    raise InferopsError(
        "no way to run containers works here",
        where="podman with crun or runc",
        why="; ".join(errors) or "neither runc nor crun is installed",
        do="use a machine (virtual is fine) with root and mount rights; an unprivileged container has none",
    )


def _try(candidate: Podman) -> None:
    """Run /bin/true of this machine in a container that sees this machine's programs read-only."""
    folder = cache("runtime", "empty", "x").parent
    folder.mkdir(exist_ok=True)
    mounts: Sequence[str] = [f"--volume={path}:{path}:ro" for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path)]  # noqa: PTH110
    for name in ("usr", "bin", "lib", "lib64", "proc", "sys", "dev", "run", "tmp", "etc"):
        (folder / name).mkdir(exist_ok=True)
    candidate("run", "--rm", "--privileged", "--net=none", *mounts, "--rootfs", folder, "/usr/bin/true", timeout_s=60)
