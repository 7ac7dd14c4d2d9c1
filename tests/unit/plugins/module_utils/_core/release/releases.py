"""Specs for the tests: one good release, and others that differ in one thing."""

from __future__ import annotations

from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._core.release.runner import carry_on
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.store import Store
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.submit import submit
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.systemd import quote

from .simulated_host import INSTANCE, SECRET, SimulatedHost

PLAN = {"model": "kimi-k2.6", "points": [{"concurrency": 1}]}
LAUNCH = ["/opt/engine/bin/python", "-m", "sglang.launch_server"]


def spec_dict(depth: int = 8, extra: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """Return a spec whose pp_async_batch_depth tells releases apart."""
    argv = ["--model-path", "/srv/models/kimi", "--served-model-name", "kimi-k2.6", "--port", "30000"]
    argv += ["--pp-async-batch-depth", str(depth), "--enable-metrics", *extra]
    wrapper = ["/opt/tools/bin/python", "/opt/tools/inferops.pyz", "serve", "--instance", INSTANCE]
    wrapper += ["--release-dir", f"/var/lib/inferops/{INSTANCE}/releases/@RELEASE@", "--port", "30000", "--"]
    service = f"[Service]\nType=notify\nExecStart={quote(wrapper + LAUNCH + argv)}\n"
    unit = f"[Unit]\nDescription=SGLang\n\n{service}\n[Install]\nWantedBy=multi-user.target\n"
    return {
        "instance": INSTANCE,
        "engine": {
            "version": "0.5.23",
            "lock_sha256": "a" * 64,
            "python": "/opt/engine/bin/python",
            "site_packages": "/opt/engine/lib",
            "launch": LAUNCH,
        },
        "model": {"path": "/srv/models/kimi", "served_name": "kimi-k2.6", "revision": None},
        "argv": argv,
        "unit": unit,
        "port": 30000,
        "front": {"kind": "socket_proxy", "listen": "0.0.0.0:8000"},
        "secrets_file": "/etc/inferops/kimi/engine.yaml",
        "expect": {"pp_async_batch_depth": depth},
        "plan": PLAN,
        "timeouts": {"start_s": 120, "drain_s": 20},
        "tools": {"python": "/opt/tools/bin/python", "archive": "/opt/tools/inferops.pyz"},
        **changes,
    }


IMAGE = "registry.example/sglang@sha256:" + "d" * 64


def quadlet_dict(depth: int = 8, **changes: Any) -> dict[str, Any]:
    """Return the same release in a container."""
    spec = spec_dict(depth)
    launch = ["/usr/bin/python3", "-m", "sglang.launch_server"]
    words = quote(["/usr/bin/python3", "/opt/tools/inferops.pyz", "serve", "--instance", INSTANCE, "--", *launch, *spec["argv"]])
    container = f"[Container]\nImage={IMAGE}\nNotify=true\nVolume=/r/@RELEASE@:/r\nExec={words}\n"
    unit = f"[Unit]\nDescription=SGLang\n\n{container}\n[Install]\nWantedBy=multi-user.target\n"
    engine = {**spec["engine"], "lock_sha256": "d" * 64, "launch": launch, "container": {"image": IMAGE}}
    return {**spec, "engine": engine, "unit": unit, **changes}


def new_host() -> tuple[SimulatedHost, Store]:
    host = SimulatedHost()
    host.files["/etc/inferops/kimi/engine.yaml"] = f'api-key: "{SECRET}"\n'
    return host, Store(host, INSTANCE)


def ask(host: SimulatedHost, store: Store, spec: dict[str, Any] | None, **how: Any) -> dict[str, Any]:
    """Submit as the module does."""
    return submit(host, store, ReleaseSpec.from_dict(spec) if spec else None, **how)


def run_attempt(host: SimulatedHost, store: Store) -> str:
    """Do what the runner's unit does: carry the attempt in attempt.json on."""
    outcome = carry_on(host, store, lambda text: None)
    host.active.pop("inferops-release@kimi.service", None)
    return outcome


def deploy(host: SimulatedHost, store: Store, spec: dict[str, Any] | None, **how: Any) -> str:
    assert ask(host, store, spec, **how)["outcome"] == "submitted"
    return run_attempt(host, store)
