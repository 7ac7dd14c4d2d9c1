# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a host before its driver is touched. Absent is None: nobody could tell."""

from __future__ import annotations

from dataclasses import dataclass

from .names import Package


@dataclass(frozen=True)
class Card:
    """One NVIDIA card on the PCI bus and the kernel driver that has it, None where no driver has."""

    address: str
    device_id: int
    driver: str | None = None


@dataclass(frozen=True)
class Holder:
    """A process that has a device node of a card open; ``unit`` is the systemd unit it belongs to, empty where it has none."""

    pid: int
    command: str
    unit: str = ""


@dataclass(frozen=True)
class Source:
    """A package source that is enabled on the host."""

    file: str
    uri: str


@dataclass(frozen=True)
class Module:
    """A kernel module nvidia, loaded or on disk; ``flavour`` is open or closed."""

    version: str
    flavour: str | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel on the host: its headers, whether a package source offers them (None: not asked), its module nvidia on disk."""

    release: str
    headers: bool = False
    headers_offered: bool | None = None
    module: Module | None = None


@dataclass(frozen=True)
class Facts:
    """Everything that the plan rests on."""

    os_id: str
    os_version: str
    arch: str
    running: Kernel
    next: Kernel
    cards: tuple[Card, ...] = ()
    loaded: Module | None = None
    modules: frozenset[str] = frozenset()
    blacklisted: frozenset[str] = frozenset()
    packages: tuple[Package, ...] = ()
    half_done: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    holders: tuple[Holder, ...] = ()
    nodes: frozenset[str] = frozenset()
    secure_boot: bool | None = None
    key_enrolled: bool | None = None
    boot_free_mib: int | None = None
    root_free_mib: int | None = None
    nvswitches: int = 0
    control_host: bool = False
    minute_of_day: int | None = None
    initramfs_stale: bool = False
    rebooted_for: str | None = None
    notes: tuple[str, ...] = ()
