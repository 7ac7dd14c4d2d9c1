"""The command: play the acts, end with a table of five lines and the report's path; or clean up."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from _core.errors import InferopsError
from inferops_lab import environment, hosts, machine, runtime
from inferops_lab.places import REPOSITORY, cache

from .acts import PLAY, Act, Theatre
from .judge import Judgement
from .stage import HOST, prepare, start_host
from .view import look

OUT = REPOSITORY / "out" / "demo"
OURS = {"archives", "controller", "inventories", "locks", "models", "nvml", "reports", "rootfs", "runtime"} | {
    "sanity-home",
    "ssh",
    "storage",
    "wheelhouse",
    "wheelhouse-state",
    "wheels",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--clean", action="store_true", help="remove everything that demo and tests made on this machine")
    parser.add_argument("--until", type=int, default=len(PLAY), metavar="ACT", help="stop after this act (default: %(default)s)")
    args = parser.parse_args(argv)
    try:
        return clean() if args.clean else demo(args.until)
    except InferopsError as exc:
        print(f"\n{exc}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\ninterrupted; the host keeps what it had, `make demo` starts afresh, `make demo-clean` removes everything",
            file=sys.stderr,
        )
        return 130


def demo(until: int) -> int:
    """Play the acts in order; the first one that does not end as it must ends the demo."""
    since = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    python = prepare()
    theatre = Theatre(python, start_host(), OUT)
    rows: list[str] = []
    report: Path | None = None
    held = True
    for act in PLAY[:until]:
        judged = Judgement(act.title)
        began = time.monotonic()
        print(f"\n=== Act {act.number}: {act.title}", flush=True)
        act.perform(theatre, judged)
        report = keep_reports() or report
        print(f"\nAct {act.number} judged by what is on the host:\n{judged.text()}", flush=True)
        rows.append(row(act, judged, time.monotonic() - began))
        held = judged.holds
        if not held:
            break
    print_table(rows, time.monotonic() - since, report, held=held)
    return 0 if held else 1


def row(act: Act, judged: Judgement, seconds: float) -> str:
    figures = "  ".join(f"{judged.figures[c]:6.1f}" if c in judged.figures else "     –" for c in (1, 8, 16))
    word = "as it must" if judged.holds else "NOT as it must"
    return f"{act.number}    {act.title:<24} {figures}   {seconds:5.0f} s   {word}"


def print_table(rows: list[str], seconds: float, report: Path | None, *, held: bool) -> None:
    print(f"\nact  {'what':<24}  tok/s at 1 / 8 / 16         time   ended")
    print("\n".join(rows))
    ended = "All acts ended as they must" if held else "The demo FAILED"
    print(f"\n{ended} after {seconds:.0f} s on a simulated engine: no GPU was used.")
    if report:
        print(f"Report: {report}")
    print("The host is still up: tests/lab/lab exec demo bash. `make demo-clean` removes everything.")


def keep_reports() -> Path | None:
    """Copy every gate's result folder from the host; return the last HTML report."""
    newest: Path | None = None
    for number, folder in enumerate(look(HOST).gates, start=1):
        target = OUT / f"gate-{number}"
        if not target.exists():
            runtime.podman()("cp", f"{HOST}:{folder}", target)
        page = target / "report.html"
        newest = page if page.exists() else newest
    return newest


def clean() -> int:
    """Remove hosts, images, caches and environments; what belongs to others on this machine is not touched."""
    machine.check_root()
    root = cache("x").parent
    # By name: whoever points the cache to a folder of theirs keeps what else is in it.
    folders = [path for path in root.iterdir() if path.name in OURS or path.name.startswith("venv-")]
    folders += [environment.DEFAULT, OUT, REPOSITORY / "out" / "molecule"]
    if (root / "storage").exists():
        tool = runtime.podman()
        hosts.down(hosts.running(everything=True))
        tool("rmi", "--all", "--force")
        folders.append(tool.run_root)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if not any(root.iterdir()):
        root.rmdir()
    print("removed " + ", ".join(map(str, folders)))
    return 0
