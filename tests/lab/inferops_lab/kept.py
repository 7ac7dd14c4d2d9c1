"""Hosts kept as images: what takes minutes is brought about once per state of the tree, then started many times."""

from __future__ import annotations

from .image import image
from .places import REPOSITORY, cache, digest
from .runtime import podman
from .shell import Step

STORE = "localhost/inferops-lab-kept"
# Everything that decides what a deployment leaves on a host. Change one file, and the host is brought about anew.
SOURCES = ("deploy.yml", "plugins", "roles", "playbooks", "molecule/shared", "tests/fakes")


def name_of(purpose: str) -> str:
    """Return the image that a host for this purpose has with the tree and the wheels as they are now."""
    lock = cache("wheelhouse", "engine.lock")
    parts = [image(), *(REPOSITORY / source for source in SOURCES), *([lock] if lock.exists() else [])]
    return f"{STORE}:{purpose}-{digest(parts)}"


def find(purpose: str) -> str | None:
    """Return that image if there is one."""
    name = name_of(purpose)
    return name if name in _all() else None


def keep(host: str, purpose: str) -> str:
    """Keep a running host as it is this moment; what starts from it finds itself after a power cut."""
    name = name_of(purpose)
    with Step(f"keeping host {host}"):
        podman()("commit", "--quiet", host, name)
    stale = [other for other in _all() if other.startswith(f"{STORE}:{purpose}-") and other != name]
    if stale:
        podman()("rmi", "--ignore", *stale)
    return name


def _all() -> list[str]:
    return podman()("images", "--format", "{{.Repository}}:{{.Tag}}").split()
