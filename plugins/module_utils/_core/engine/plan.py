# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of one environment: where it lies, whether it is there, and what is in the way of making it. Changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import brought, pins
from . import floors as floor
from .host import Interpreter, ask_interpreter, driver_version, look_at
from .launch import launch_words
from .lock import Lock, read_lock
from .wheels import Wheel, best, in_folder

MARK = ".inferops-complete"


@dataclass(frozen=True)
class Wanted:
    """What the user asks for; an empty ``wheelhouse`` means the package index, 0 MiB that the room is worked out."""

    version: str
    lock: str
    root: str
    python: str
    lock_path: str = "lock"
    wheelhouse: str = ""
    bundle: str = ""
    compile: bool = True
    launch: list[str] = field(default_factory=list)
    driver: str = ""
    space_mib: int = 0
    accepted_pins: list[str] = field(default_factory=list)
    interpreter: str = ""
    interpreter_sha256: str = ""

    @property
    def wheels(self) -> str:
        """The folder with the wheels, that of the bundle where there is one; empty means the package index."""
        return f"{self.bundle}/wheels" if self.bundle else self.wheelhouse

    @property
    def archive(self) -> tuple[Path, str] | None:
        """The Python that was brought along, and the SHA-256 it must have."""
        if self.interpreter:
            return Path(self.interpreter), self.interpreter_sha256
        bundle = Path(self.bundle)
        there = sorted((bundle / "interpreter").glob("*")) if self.bundle and (bundle / brought.SUMS).is_file() else []
        return (there[0], brought.listed(bundle).get(f"interpreter/{there[0].name}", "")) if there else None


@dataclass
class Plan:
    """What is known of an environment; ``interpreter`` is a text where it does not answer."""

    wanted: Wanted
    lock: Lock
    folder: Path
    interpreter: Interpreter | str
    complete: bool
    wheel: Wheel | None
    floors: floor.Floors
    brought: brought.Brought | None = None
    """The Python that takes the place of the host's own; None where that one will do."""

    @property
    def site_packages(self) -> Path:
        if self.complete or isinstance(self.interpreter, str):
            there = sorted(self.folder.glob("lib/python3*/site-packages"))
            if there:
                return there[0]
        version = self.interpreter.version[:2] if isinstance(self.interpreter, Interpreter) else (3, 0)
        return self.folder / f"lib/python{version[0]}.{version[1]}/site-packages"

    @property
    def source(self) -> Path | None:
        """The installed packages, else the wheel, else nothing."""
        if self.complete:
            return self.site_packages
        return None if self.wheel is None else self.wheel.path

    def refuse(self) -> None:
        """Raise what is in the way; nothing is in the way of what is already there."""
        if not self.complete and self.floors.problems:
            raise floor.refusal(self.wanted.version, str(self.folder), self.floors.problems)

    def as_dict(self) -> dict[str, Any]:
        words, why = (
            (list(self.wanted.launch), "sglang_engine_launch")
            if self.wanted.launch
            else launch_words(self.source, str(self.folder))
        )
        python = f"{self.folder}/bin/python"
        return {
            "version": self.wanted.version,
            "lock_sha256": self.lock.sha256,
            "dir": str(self.folder),
            "complete": self.complete,
            "python": python,
            "site_packages": str(self.site_packages),
            "source_root": str(self.source or ""),
            "launch": [python, *words],
            "launch_why": why,
            "has_venv": self.brought is not None or not isinstance(self.interpreter, Interpreter) or self.interpreter.has_venv,
            "need_bytes": self.floors.need_bytes,
            "notes": self.floors.notes,
        }


def make_plan(wanted: Wanted) -> Plan:
    """Look at the host and return the plan. Raises InferopsError only where the lock is not one for this release."""
    lock = read_lock(wanted.lock, wanted.version, wanted.lock_path)
    folder = Path(wanted.root) / f"{wanted.version}-{lock.sha256[:12]}"
    complete = is_complete(folder)
    interpreter: Interpreter | str = "not asked" if complete else ask_interpreter(wanted.python)
    plan = Plan(wanted, lock, folder, interpreter, complete, None, floor.Floors())
    if complete:
        plan.floors.notes.extend(record(folder).get("notes", []))
        return plan
    wheels = in_folder(Path(wanted.wheels)) if wanted.wheels and Path(wanted.wheels).is_dir() else []
    _take_brought(plan, wheels)
    if isinstance(plan.interpreter, str):
        plan.floors.refuse(
            f"{wanted.python} is no Python that answers: {plan.interpreter}",
            f"install one and set sglang_engine_python to it, {floor.BRING}",
        )
    else:
        _judge(plan, plan.interpreter, wheels)
    return plan


def _take_brought(plan: Plan, wheels: list[Wheel]) -> None:
    """Take the Python that was brought along where the host's own is not what the release or the lock needs."""
    wanted, own, trial = plan.wanted, plan.interpreter, floor.Floors()
    archive = wanted.archive
    if archive is None:
        return
    if isinstance(own, Interpreter):
        floor.check_python(trial, plan.lock, wanted.version, own, _wheel_of(wanted, wheels, own))
        if not trial.problems:
            return
    found = brought.look(*archive, Path(wanted.root))
    said = found if isinstance(found, str) else found.interpreter
    if isinstance(found, str) or isinstance(said, str):
        plan.floors.refuse(
            f"the Python that was brought along cannot be used: {said}",
            "copy the archive again, see sglang_engine_interpreter_archive and sglang_engine_interpreter_sha256",
        )
        return
    why = "; ".join(text for text, dummy in trial.problems) or f"{wanted.python}: {own}"
    plan.brought, plan.interpreter = found, said
    plan.floors.notes.append(f"Python {said.dotted} of {found.archive.name} is taken: {why}")


def _wheel_of(wanted: Wanted, wheels: list[Wheel], python: Interpreter) -> Wheel | None:
    own = [wheel for wheel in wheels if (wheel.name, wheel.version) == ("sglang", wanted.version)]
    return best(own, python.target) or (own[0] if own else None)


def _judge(plan: Plan, python: Interpreter, wheels: list[Wheel]) -> None:
    wanted, lock, floors = plan.wanted, plan.lock, plan.floors
    house = Path(wanted.wheels) if wanted.wheels else None
    plan.wheel = _wheel_of(wanted, wheels, python)
    floor.check_python(floors, lock, wanted.version, python, plan.wheel)
    floor.check_platform(floors, lock, wanted.version, python, wheels_known=house is not None)
    chosen = [] if house is None else floor.check_wheels(floors, lock, python, wheels, house)
    need, origin = floor.needed_bytes(lock, chosen, from_index=house is None, compiled=wanted.compile, space_mib=wanted.space_mib)
    need += plan.brought.size_bytes if plan.brought and not wanted.space_mib else 0
    floor.check_place(floors, look_at(Path(wanted.root)), need, origin)
    floor.check_driver(floors, lock, wanted.driver or driver_version())
    if plan.wheel is not None:
        have = {pin.name: pin.version for pin in lock.pins if pin.counts(python.marker)}
        found = pins.against_release(plan.wheel.metadata.get("requires-dist", []), have, python.marker)
        judge_pins(floors, found, wanted.accepted_pins)


def judge_pins(floors: floor.Floors, found: list[pins.Difference], accepted: list[str]) -> None:
    """Refuse another kernel build than the release asks for, unless it was accepted by name; say the rest."""
    blocking = [difference for difference in found if difference.blocks and difference.name not in accepted]
    for difference in blocking:
        floors.refuse(
            f"{difference.text()} [Requires-Dist]",
            "make the lock from the release's own requirements, or accept the package in sglang_engine_accepted_pins",
        )
    floors.notes.extend(pins.notes(d for d in found if not d.blocks))
    floors.notes.extend(f"accepted: {d.text()}" for d in found if d.blocks and d.name in accepted)


def is_complete(folder: Path) -> bool:
    return (folder / MARK).is_file()


def record(folder: Path) -> dict[str, Any]:
    """Return what the mark of an environment says; empty where it says nothing that can be read."""
    try:
        said = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
