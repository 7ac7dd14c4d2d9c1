# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan: from what a host is to what is wanted. Whoever carries it out asks again and must get an empty one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import InferopsError
from . import names
from .branches import driver_version, same_version
from .facts import Facts
from .refusals import refusals
from .way import RIVALS, Way, way
from .wish import Wish


@dataclass(frozen=True)
class Step:
    """One thing that has to be done, what it is done to, and why."""

    name: str
    items: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Plan:
    """``packages`` are asked for by name, ``moved`` are installed ones of another version, ``spec`` fits the version of all."""

    steps: tuple[Step, ...]
    refusals: tuple[InferopsError, ...]
    way: Way
    spec: str
    pin: str
    packages: tuple[str, ...]
    moved: tuple[str, ...]
    removed: tuple[str, ...]
    extras: tuple[str, ...]
    headers: tuple[str, ...]
    unheld: tuple[str, ...]
    lock: tuple[str, ...]
    blacklist: tuple[str, ...]
    build: tuple[str, ...]
    fabric_manager: bool
    prebuilt: bool
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        told = [{"what": refusal.what, **refusal.details, "text": str(refusal)} for refusal in self.refusals]
        found = {**asdict(self), "refusals": told, "reboot": self.way.kind == "reboot", "empty": not self.steps}
        return {key: [*value] if isinstance(value, tuple) else value for key, value in found.items()}


def make_plan(facts: Facts, wish: Wish) -> Plan:
    """Return the steps in order, what is in the way of them, and how the module gets into the kernel."""
    installed = {package.name: package for package in facts.packages}
    in_set = [package for package in facts.packages if package.in_set]
    prebuilt = wish.source == "distribution"
    asked = names.driver_packages(
        facts.os_id,
        source=wish.source,
        branch=wish.branch,
        flavour=wish.flavour,
        full=wish.full,
        kernel=facts.next.release,
        prebuilt=prebuilt,
    )
    fabric = wish.fabric_manager == "present" or (wish.fabric_manager == "auto" and facts.nvswitches > 0)
    if fabric:
        asked.append(names.fabric_manager(facts.os_id, wish.branch))
    removed = tuple(sorted(p.name for p in in_set if p.name not in asked and _replaced(p, wish, fabric)))
    staying = [package for package in in_set if package.name not in removed]
    spec, uneven = _spec(staying, wish)
    missing = tuple(name for name in asked if name not in installed)
    moved = tuple(sorted(p.name for p in staying if not fnmatchcase(p.version, spec)))
    extras = tuple(name for name in _extras(wish) if name not in installed)
    needs_packages = bool(missing or moved or removed)
    target = None if needs_packages and not uneven else _target(staying)
    chosen = way(facts, wish, target=wish.version or target)
    of_module = {package.name for package in in_set if package.open_module or package.closed_module}
    if facts.loaded is not None and chosen.kind == "none" and of_module & {*moved, *removed}:
        chosen = Way(
            "reload" if wish.reload_allowed else "reboot", f"packages of the set move, module {facts.loaded.version} is loaded"
        )
    if needs_packages and facts.loaded is not None and chosen.kind == "none" and not in_set:
        chosen = Way(
            "reload" if wish.reload_allowed else "reboot", f"module {facts.loaded.version} is loaded without its packages"
        )
    headers = () if prebuilt else _headers(facts, chosen, needed=needs_packages)
    unheld = tuple(sorted(package.name for package in staying if not package.held))
    blacklist = tuple(module for module in RIVALS if module not in facts.blacklisted)
    build = () if prebuilt or needs_packages or not in_set else _unbuilt(facts, chosen, wish)
    steps = [
        Step("repair", facts.half_done, "an earlier run of the package manager did not end"),
        Step("headers", headers, "DKMS builds the module against them"),
        Step("blacklist", blacklist, "another driver must not take the cards at the next boot"),
        Step("initramfs", (facts.next.release,) if facts.initramfs_stale else (), "it was made before the blacklist"),
        Step("remove", removed, "other packages take their place, or nothing does"),
        Step("install", missing, f"version {spec}"),
        Step("move", moved, f"to version {spec}, the whole set at once"),
        Step("build", build, "no module of the wanted flavour is on disk for this kernel"),
        Step("extras", extras, "wished beside the driver"),
        Step("hold", unheld, "only this role moves the driver"),
        Step(chosen.kind, () if chosen.kind == "none" else (wish.version or str(wish.branch),), chosen.reason),
    ]
    return Plan(
        steps=tuple(step for step in steps if step.items),
        refusals=tuple(refusals(facts, wish, chosen, needs_packages=needs_packages, prebuilt=prebuilt)),
        way=chosen,
        spec=spec,
        pin=wish.spec,
        packages=tuple(asked),
        moved=moved,
        removed=removed,
        extras=extras,
        headers=headers,
        unheld=unheld,
        lock=tuple(sorted(f"{package.name}-{package.version}.*" for package in staying)),
        blacklist=blacklist,
        build=build,
        fabric_manager=fabric,
        prebuilt=prebuilt,
        notes=tuple(_notes(facts, in_set)),
    )


def _replaced(package: names.Package, wish: Wish, fabric: bool) -> bool:
    """Say whether it is of the other flavour, carries another branch in its name, or manages a fabric that is not there."""
    other = package.closed_module if wish.flavour == "open" else package.open_module
    return (
        other
        or package.named_branch not in {None, wish.branch}
        or (package.name.startswith("nvidia-fabricmanager") and not fabric)
    )


def _spec(in_set: list[names.Package], wish: Wish) -> tuple[str, bool]:
    """Return the pattern for versions; a set that was moved in part is brought to its newest version of the branch."""
    versions = {p.version for p in in_set if fnmatchcase(p.version, wish.spec)}
    drivers = {driver_version(version) for version in versions}
    if len(drivers) < 2:
        return wish.spec, False
    newest = max(versions, key=lambda version: driver_version(version) or ())
    return f"{newest.partition('-')[0].partition(':')[2] or newest.partition('-')[0]}-*", True


def _target(in_set: list[names.Package]) -> str | None:
    """Return the version of the set, that is of its kernel module where one can be told."""
    modules = [package.version for package in in_set if package.open_module or package.closed_module]
    versions = modules or [package.version for package in in_set]
    return max(versions, key=lambda version: driver_version(version) or (), default=None)


def _extras(wish: Wish) -> list[str]:
    extras = names.toolkit_packages(wish.toolkit, compiler_only=wish.toolkit_compiler_only)
    return [*extras, *(["nvidia-container-toolkit"] if wish.container_toolkit else [])]


def _headers(facts: Facts, chosen: Way, *, needed: bool) -> tuple[str, ...]:
    kernels = {facts.running.release: facts.running}
    if chosen.kind == "reboot":
        kernels[facts.next.release] = facts.next
    return tuple(
        names.headers_package(facts.os_id, k.release) for k in kernels.values() if needed and not k.headers and k.headers_offered
    )


def _unbuilt(facts: Facts, chosen: Way, wish: Wish) -> tuple[str, ...]:
    """Return the kernels that will run and have no wanted module on disk: a kernel came after the driver, or its build failed."""
    kernels = {facts.next.release: facts.next} if chosen.kind == "reboot" else {facts.running.release: facts.running}
    return tuple(k.release for k in kernels.values() if k.module is None or k.module.flavour not in {None, wish.flavour})


def _notes(facts: Facts, in_set: list[names.Package]) -> list[str]:
    notes = list(facts.notes)
    if not facts.cards:
        notes.append("no NVIDIA card is on the PCI bus: flavour and branch could not be held against one")
    if facts.loaded and in_set and not any(same_version(p.version, facts.loaded.version) for p in in_set):
        notes.append(
            f"module {facts.loaded.version} is in the kernel, the packages are of another version: a reboot is still due"
        )
    if facts.next.release != facts.running.release:
        notes.append(f"kernel {facts.running.release} runs, {facts.next.release} is booted next")
    return notes
