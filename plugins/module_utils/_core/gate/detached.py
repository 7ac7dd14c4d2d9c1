# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A gate in a process of its own: it outlives the task that started it and ends by itself when nobody follows it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .context import GateContext
from .files import read_key, read_mapping
from .folder import PROGRESS, RESULT
from .lease import Lease
from .plan import GatePlan
from .plan_files import check_files
from .run import run_gate

JOB, LEASE, LOG, ERROR, CODE = "job.json", "lease", "gate.log", "error.json", "code.zip"
POLL_S = 0.5


@dataclass(frozen=True)
class Run:
    """A started run: where it writes, its id, its process."""

    folder: Path
    run_id: str
    pid: int
    began: int | None
    """Start of the process in clock ticks since boot: with the id it names one process for good."""

    @property
    def progress(self) -> Path:
        return self.folder / PROGRESS

    @property
    def lease(self) -> Path:
        return self.folder / LEASE

    def running(self) -> bool:
        """Tell whether the process of this very run is alive (its id may be another's by now)."""
        state, began = _process(self.pid)
        return state not in (None, "Z") and began == self.began


def start(
    folder: Path,
    *,
    base_url: str,
    plan: Mapping[str, Any],
    context: Mapping[str, Any],
    api_key_file: Path | None,
    lease_s: float,
) -> Run:
    """Validate everything, then start the gate detached; return at once."""
    check_files(GatePlan.from_dict(plan))
    GateContext.from_dict(context)
    read_key(api_key_file, {})
    if (old := _known(folder)) is not None and old.running():
        raise InferopsError("a gate is already running in this folder", where=str(folder), do="follow it, or wait until it ends")
    run_id = uuid.uuid4().hex[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (ERROR, RESULT, PROGRESS):
            (folder / name).unlink(missing_ok=True)
        Lease(folder / LEASE, lease_s).renew()
        job = {
            "run_id": run_id,
            "base_url": base_url,
            "plan": dict(plan),
            "context": dict(context),
            "api_key_file": None if api_key_file is None else str(api_key_file),
            "lease_s": lease_s,
        }
        (folder / JOB).write_text(json.dumps(job), encoding="utf-8")
        pid = _spawn(folder)
        run = Run(folder, run_id, pid, _process(pid)[1])
        (folder / JOB).write_text(json.dumps({**job, "pid": run.pid, "began": run.began}), encoding="utf-8")
    except OSError as exc:
        what = "the gate cannot be started"
        raise InferopsError(what, where=str(folder), why=str(exc), do="check path, rights and space") from exc
    return run


def attach(folder: Path, run_id: str) -> Run:
    """Return the run of that id, or raise InferopsError when the folder holds another one."""
    run = _known(folder)
    if run is None or run.run_id != run_id:
        raise InferopsError(f"run {run_id} is not in this folder", where=str(folder), do="start a new gate")
    return run


def follow(run: Run, lease_s: float) -> dict[str, Any]:
    """Renew the lease until the run has ended; return its result."""
    lease = Lease(run.lease, lease_s)
    while run.running():
        lease.renew()
        time.sleep(POLL_S)
    return outcome(run)


def outcome(run: Run) -> dict[str, Any]:
    """Return the result of a run that has ended; raise what it raised, or say that it died."""
    folder = run.folder
    if (folder / ERROR).exists():
        error = read_mapping(folder / ERROR, "error of the gate")
        raise InferopsError(error["what"], **{key: error[key] for key in ("where", "why", "do") if key in error})
    if (folder / RESULT).exists():
        result = read_mapping(folder / RESULT, "gate result")
        if not result.get("finished"):
            result["reasons"] = [*result.get("reasons", []), "the gate process died before its verdict"]
        return result
    log = (folder / LOG).read_text(encoding="utf-8", errors="replace")[-1500:] if (folder / LOG).exists() else ""
    why = log.strip() or "it left no message"
    raise InferopsError("the gate process died without a result", where=str(folder / LOG), why=why)


def main(words: list[str]) -> int:
    """Run the job that lies in a folder: the body of the detached process."""
    folder = Path(words[0])
    job = read_mapping(folder / JOB, "gate job")
    lease = Lease(folder / LEASE, job["lease_s"])
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    try:
        run_gate(
            job["base_url"],
            GatePlan.from_dict(job["plan"]),
            folder,
            api_key=read_key(None if job["api_key_file"] is None else Path(job["api_key_file"]), os.environ),
            context=GateContext.from_dict(job["context"]),
            should_stop=lambda: told.is_set() or lease.expired(),
        )
    except InferopsError as exc:
        (folder / ERROR).write_text(json.dumps({"what": exc.what, **exc.details}), encoding="utf-8")
        return 2
    finally:
        (folder / CODE).unlink(missing_ok=True)
    return 0


def _known(folder: Path) -> Run | None:
    try:
        job = json.loads((folder / JOB).read_text(encoding="utf-8"))
        return Run(folder, job["run_id"], job["pid"], job["began"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _process(pid: int) -> tuple[str | None, int | None]:
    """Return (state letter, start time) of a process, (None, None) when there is none; see proc(5), stat."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return fields[0], int(fields[19])
    except (OSError, IndexError, ValueError):
        return None, None


def _spawn(folder: Path) -> int:
    """Start this very module again. Ansible deletes the archive it came in with the task, so that is kept beside the run."""
    root = Path(__file__).parents[__name__.count(".")]
    if root.is_file():
        shutil.copyfile(root, folder / CODE)
        root = folder / CODE
    program = f"import sys; from {__name__} import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
    return process.pid


def run_or_follow(wish: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a task asks: start a gate or follow a started one, and return its result unless it shall not wait."""
    folder = Path(wish["out_dir"])
    if not 5 <= wish["lease_s"] <= 3600:
        raise InferopsError(f"a lease of {wish['lease_s']:g} s is outside 5 … 3600", where="lease_s", do="use 60")
    if wish["run_id"] is not None:
        run = attach(folder, wish["run_id"])
    else:
        run = start(
            folder,
            base_url=wish["base_url"],
            plan=wish["plan"],
            context=wish["context"],
            api_key_file=None if wish["api_key_file"] is None else Path(wish["api_key_file"]),
            lease_s=wish["lease_s"],
        )
    where = {"run_id": run.run_id, "pid": run.pid, "progress": str(run.progress), "lease": str(run.lease)}
    if not wish["wait"]:
        return where
    result = follow(run, wish["lease_s"])
    kept = {key: result[key] for key in ("verdict", "reasons", "points", "gpus", "engine", "diagnosis", "notes")}
    return {**where, **kept, "report": str(folder / "report.html")}


def sentence(answer: Mapping[str, Any]) -> str:
    """Return the message of a task that fails because of its verdict."""
    causes = [f"{item['code']}: {item['message']}" for item in answer["diagnosis"]]
    lines = [f"the gate says {answer['verdict']}", *(f"  why:   {reason}" for reason in answer["reasons"])]
    lines += [f"  cause: {cause}" for cause in causes]
    return "\n".join([*lines, f"  where: {answer['report']}"])
