# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts of every kind for the tests of the driver's plan."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.facts import Card, Facts, Kernel, Module
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.names import Package

RTX_PRO_6000_SERVER, RTX_4090, P40 = 0x2BB5, 0x2684, 0x1B38
OPEN_580 = Module("580.95.05", "open")
SET = ("nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced", "libnvidia-ml1", "libcuda1")
ALL_BLACKLISTED = frozenset({"nouveau", "nova", "nova_core", "nova_drm", "nvidiafb"})


def cards(count=8, device_id=RTX_PRO_6000_SERVER, driver=None):
    return tuple(Card(f"0000:{index + 1:02x}:00.0", device_id, driver) for index in range(count))


def kernel(release="6.1.0-40-amd64", headers=True, offered=None, module=None):
    return Kernel(release, headers, offered, module)


def fresh(**changes) -> Facts:
    """A host with cards and without a driver."""
    known = {
        "os_id": "debian",
        "os_version": "12",
        "arch": "x86_64",
        "running": kernel(),
        "next": kernel(),
        "cards": cards(),
        "secure_boot": False,
        "boot_free_mib": 500,
        "root_free_mib": 50_000,
        "minute_of_day": 12 * 60,
    }
    return Facts(**{**known, **changes})


def packages(version="580.95.05-1", held=True, names=SET):
    return tuple(Package(name, version, held) for name in names)


def done(**changes) -> Facts:
    """The host after the role: everything as wished."""
    built = kernel(module=OPEN_580)
    known = {
        "cards": cards(driver="nvidia"),
        "packages": packages(),
        "loaded": OPEN_580,
        "running": built,
        "next": built,
        "modules": frozenset({"nvidia", "nvidia_uvm"}),
        "blacklisted": ALL_BLACKLISTED,
        "nodes": frozenset({"nvidiactl", "nvidia-uvm", *(f"nvidia{index}" for index in range(8))}),
    }
    return fresh(**{**known, **changes})


def ubuntu(facts: Facts, version="24.04") -> Facts:
    return replace(facts, os_id="ubuntu", os_version=version)
