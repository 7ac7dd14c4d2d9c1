# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""An engine in a container: the host is held against it, its image fetched, asked and read; the source is kept beside."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from . import floors as floor
from . import image as checks
from . import pins
from .hold import held
from .host import look_at
from .image import ImageWanted
from .install import partial, remove
from .launch import launch_words
from .plan import MARK, is_complete, record
from .podman import Podman

SITE = "site-packages"
KIND = "container"
PYTHON_FLOOR = (3, 11)


@dataclass
class ImagePlan:
    """What is known of an engine in a container; ``said`` is the record of one that is there, whole."""

    wanted: ImageWanted
    complete: bool
    said: dict[str, Any] = field(default_factory=dict)
    floors: floor.Floors = field(default_factory=floor.Floors)

    def refuse(self) -> None:
        """Raise what is in the way; nothing is in the way of what is already there."""
        if not self.complete and self.floors.problems:
            raise floor.refusal(self.wanted.version, str(self.wanted.folder), self.floors.problems)

    def as_dict(self) -> dict[str, Any]:
        wanted, site = self.wanted, self.wanted.folder / SITE
        python = str(self.said.get("python") or "/usr/bin/python3")
        words, why = list(self.said.get("launch") or ["-m", "sglang.launch_server"]), str(self.said.get("launch_why") or "")
        if wanted.launch:
            words, why = list(wanted.launch), "sglang_engine_launch"
        return {
            "version": wanted.version,
            "lock_sha256": wanted.digest,
            "dir": str(wanted.folder),
            "complete": self.complete,
            "python": python,
            "site_packages": str(site),
            "source_root": str(site) if self.complete else "",
            "launch": [python, *words],
            "launch_why": why or "no image to ask yet; every release known has this form",
            "need_bytes": self.floors.need_bytes,
            "notes": [*self.said.get("notes", []), *self.floors.notes],
            "container": {
                "image": wanted.image,
                "devices": list(wanted.devices),
                "ipc": wanted.ipc,
                "shm_mib": wanted.shm_mib,
                "args": list(wanted.args),
            },
        }


def make_plan(wanted: ImageWanted, podman: Podman | None = None) -> ImagePlan:
    """Look at the host and return the plan; changes nothing. Raises InferopsError where the image is not named by digest."""
    podman = podman or Podman(wanted.podman, wanted.run_words)
    plan = ImagePlan(wanted, is_complete(wanted.folder))
    if plan.complete:
        plan.said = record(wanted.folder)
        # Whoever tidies up containers may have removed it.
        plan.complete = podman.has(wanted.image)
    if plan.complete:
        return plan
    checks.check_podman(plan.floors, podman.version(), generator=podman.has_generator())
    checks.check_devices(plan.floors, wanted)
    checks.check_shared_memory(plan.floors, wanted, _total_mib(), _size_mib(Path("/dev/shm")))
    if not plan.floors.problems and not podman.has(wanted.image):
        _check_fetch(plan, podman.store())
    return plan


def _check_fetch(plan: ImagePlan, store: Path) -> None:
    wanted = plan.wanted
    if wanted.archive and not Path(wanted.archive).is_file():
        plan.floors.refuse(f"{wanted.archive} is not there", "copy the image there, or empty sglang_engine_image_archive")
        return
    packed = Path(wanted.archive).stat().st_size if wanted.archive else 0
    estimate = 3 * packed if packed else checks.PULL_MIB * checks.MIB
    origin = "three times the archive" if packed else "an estimate for an image with CUDA"
    need, origin = (wanted.space_mib * checks.MIB, "sglang_engine_space_mib") if wanted.space_mib else (estimate, origin)
    floor.check_place(plan.floors, look_at(store), need, origin)


def install(wanted: ImageWanted, wait_s: float, podman: Podman | None = None) -> tuple[ImagePlan, bool]:
    """Bring the image and keep its source; return the plan and whether anything changed. Nothing is left where it fails."""
    podman = podman or Podman(wanted.podman, wanted.run_words)
    plan = make_plan(wanted, podman)
    if plan.complete:
        return plan, False
    plan.refuse()
    os.umask(0o022)
    root, folder = Path(wanted.root), wanted.folder
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with held(root, f"installs {folder.name}", wait_s):
        aside = partial(folder)
        remove(aside)
        plan = make_plan(wanted, podman)
        if plan.complete:
            return plan, False
        plan.refuse()
        fetched = not podman.has(wanted.image)
        if fetched:
            podman.fetch(wanted.image, wanted.archive, wanted.authfile)
        done = False
        try:
            mark = _read(plan, podman, aside)
            mark["fetched"] = fetched or bool(plan.said.get("fetched"))
            (aside / MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
            os.sync()
            remove(folder)
            aside.rename(folder)
            done = True
        finally:
            remove(aside)
            if fetched and not done:
                podman.drop(wanted.image)
    return make_plan(wanted, podman), True


def _read(plan: ImagePlan, podman: Podman, aside: Path) -> dict[str, Any]:
    """Ask the image, copy the source out of it, and judge both; return the record."""
    wanted, found = plan.wanted, floor.Floors()
    said = podman.ask(wanted.image)
    version = tuple(said["version"])
    if version[:2] < PYTHON_FLOOR:
        found.refuse(f"its Python is {'.'.join(map(str, version))}, the wrapper needs 3.11", "take a newer image")
    if said["sglang"] != wanted.version:
        found.refuse(
            f"it holds SGLang {said['sglang'] or 'without a version'}, not {wanted.version}",
            "set sglang_engine_version to what the image holds, or take the right image",
        )
    differences = pins.against_release(said["requires"], said["have"], said["marker"])
    for difference in differences:
        if difference.blocks and difference.name not in wanted.accepted_pins:
            found.refuse(
                difference.text(), "take an image made from the release's own pins, or accept it in sglang_engine_accepted_pins"
            )
    site = aside / SITE
    files = podman.copy_source(wanted.image, said["package"], site) if said["package"] else 0
    if not (site / "sglang").is_dir():
        found.refuse("the source of SGLang is not in it, so that nothing could be checked", "take an image with the source")
    if found.problems:
        error = floor.refusal(wanted.version, str(wanted.folder), found.problems)
        what = f"the image of SGLang {wanted.version} is not right; what serves was not touched"
        raise InferopsError(what, where=wanted.image, why=error.why, do=error.do)
    words, why = launch_words(site, str(Path(said["script"]).parents[1]) if said["script"] else "/usr/local")
    return {
        "kind": KIND,
        "version": wanted.version,
        "image": wanted.image,
        "python": said["python"],
        "python_version": ".".join(map(str, version)),
        "launch": words,
        "launch_why": why,
        "notes": [
            f"{files} files of source were read out of the image",
            *(d.text() for d in differences if not d.blocks and d.found),
        ],
    }


def drop_image(folder: Path, podman: Podman | None = None) -> None:
    """Remove the image that a folder is about, where it was fetched for it."""
    said = record(folder)
    if said.get("kind") == KIND and said.get("fetched") and said.get("image"):
        (podman or Podman()).drop(str(said["image"]))


def _total_mib() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) // 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def _size_mib(path: Path) -> int | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_blocks * found.f_frsize // checks.MIB
