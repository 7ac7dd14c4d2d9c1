# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make an environment: aside, held by one run at a time, judged, and renamed when it is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InferopsError
from . import floors as floor
from . import pins
from .brought import drop_unused
from .bundle import verify_for
from .hold import held
from .host import Interpreter
from .installers import Installer, Sources, choose, clean_environment, explain
from .moving import point_scripts_to
from .plan import MARK, Plan, Wanted, judge_pins, make_plan
from .smoke import import_arguments
from .wheels import metadata_fields

CACHE, LOCK_COPY = ".cache", "inferops.lock"


@dataclass(frozen=True)
class How:
    """By what it is installed and from where; ``wait_s`` [s] for another run on the same host."""

    sources: Sources
    installer: str = "auto"
    uv: str = ""
    pip_python: str = ""
    wait_s: float = 3600


def partial(folder: Path) -> Path:
    """Where an environment is made before it is whole."""
    return folder.with_name(f".{folder.name}.partial")


def install(wanted: Wanted, how: How) -> tuple[Plan, bool, str]:
    """Make the environment unless it is there; return its plan, whether anything changed and by which installer.

    Raises InferopsError with what is in the way; then nothing is left of it, and other environments are as they were.
    """
    plan = make_plan(wanted)
    if plan.complete:
        return plan, False, ""
    plan.refuse()
    # The server runs as another user than the one that installs.
    os.umask(0o022)
    root = Path(wanted.root)
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with held(root, f"installs {plan.folder.name}", how.wait_s) as lock_fd:
        # Whoever held it may have made this very environment, or have taken the room for it; what it left takes room too.
        remove(partial(plan.folder))
        plan = make_plan(wanted)
        if plan.complete:
            return plan, False, ""
        verify_for(plan)
        plan.refuse()
        if not isinstance(plan.interpreter, Interpreter):
            raise InferopsError("the interpreter does not answer", where=wanted.python)
        installer = choose(how.installer, how.uv, how.pip_python, plan.interpreter)
        try:
            if plan.brought:
                plan.brought.unpack()
            _make(plan, plan.interpreter, installer, how.sources, lock_fd)
        finally:
            remove(partial(plan.folder))
            drop_unused(root)
        remove(root / CACHE)
    return make_plan(wanted), True, installer.kind


def _make(plan: Plan, python: Interpreter, installer: Installer, sources: Sources, lock_fd: int) -> None:
    wanted, aside = plan.wanted, partial(plan.folder)
    root = aside.parent
    temporary, cache = aside / "tmp", root / CACHE
    _run(installer, installer.venv(python.path, str(aside)), plan, sources, lock_fd, dict(os.environ))
    temporary.mkdir()
    (aside / LOCK_COPY).write_text(wanted.lock + "\n", encoding="utf-8")
    inside = str(aside / "bin" / "python")
    words = installer.install(inside, str(aside / LOCK_COPY), sources, str(cache), compiled=wanted.compile)
    _run(installer, words, plan, sources, lock_fd, clean_environment(os.environ, sources, str(temporary)))
    remove(temporary)
    (aside / ".lock").unlink(missing_ok=True)  # uv's own, which anyone may write.
    (site,) = aside.glob("lib/python3*/site-packages")
    said = judge(plan, python, site, inside)
    point_scripts_to(aside, plan.folder, site)
    mark = {
        "version": wanted.version,
        "lock_sha256": plan.lock.sha256,
        "installer": installer.kind,
        "python": python.dotted,
        "notes": said,
    }
    (aside / MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
    # The name must not be on disk before what it names is.
    os.sync()
    remove(plan.folder)
    aside.rename(plan.folder)


def judge(plan: Plan, python: Interpreter, site: Path, inside: str) -> list[str]:
    """Hold what was installed against the lock and the release, and import from it; return what is to be said of it."""
    found = floor.Floors()
    have = pins.installed(site)
    for difference in pins.against_lock(plan.lock, have, python.marker):
        found.refuse(
            difference.text(), "this is a fault of the installer; run it again, and with the other one (sglang_engine_installer)"
        )
    metadata = next(site.glob(f"sglang-{plan.wanted.version}*.dist-info/METADATA"), None)
    if metadata is None or not (site / "sglang").is_dir():
        found.refuse("the source of SGLang is not there after installation", "see whether the lock names the right package")
    else:
        requires = metadata_fields(metadata.read_text(encoding="utf-8", errors="replace")).get("requires-dist", [])
        judge_pins(found, pins.against_release(requires, have, python.marker), plan.wanted.accepted_pins)
        smoke = import_arguments(inside, torch_pinned=plan.lock.version("torch") is not None)
        found.notes.append(smoke.text)
        if smoke.blocks:
            found.refuse(smoke.text, "see whether the lock was resolved from the release's own requirements for this Python")
    if found.problems:
        error = floor.refusal(plan.wanted.version, str(plan.folder), found.problems)
        raise InferopsError(
            f"SGLang {plan.wanted.version} was installed aside and is not right; it was removed, what serves was not touched",
            where=error.where,
            why=error.why,
            do=error.do,
        )
    return [
        *(note for note in plan.floors.notes if "[Requires-Dist]" not in note and "not in the lock" not in note),
        *found.notes,
    ]


def _run(installer: Installer, words: Sequence[str], plan: Plan, sources: Sources, lock_fd: int, env: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            list(words),
            capture_output=True,
            text=True,
            errors="replace",
            env=env,
            check=False,
            pass_fds=(lock_fd,),
            stdin=subprocess.DEVNULL,
        )
        output, status = done.stdout + "\n" + done.stderr, done.returncode
    except OSError as exc:
        output, status = f"{words[0]}: {exc.strerror}", 1
    if status:
        why, do = explain(installer.kind, output, plan.folder.parent, sources)
        if "no space left" in why:
            remove(plan.folder.parent / CACHE)
        raise InferopsError(
            f"SGLang {plan.wanted.version} was not installed; what serves was not touched", where=str(plan.folder), why=why, do=do
        )


def remove(path: Path) -> bool:
    """Remove a folder whatever is in it; return whether there was one."""
    if not path.exists():
        return False
    shutil.rmtree(path)
    return True
