"""The command: play the acts, end with a table of five lines and the report's path; or clean up."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from _core.errors import InferopsError
from inferops_lab import environment, hosts, machine, runtime
from inferops_lab.places import REPOSITORY, cache

from . import acts, sglang_acts
from .acts import Act, Play, Theatre
from .judge import Judgement
from .stage import HOST, prepare, start_host
from .view import look

PLAYS = {"simulated": acts.PLAY, "sglang": sglang_acts.PLAY}
OUT = REPOSITORY / "out" / "demo"
OURS = {"archives", "controller", "inventories", "locks", "models", "nvml", "reports", "rootfs", "runtime"} | {
    "sanity-home",
    "ssh",
    "storage",
    "wheelhouse",
    "wheelhouse-cpu",
    "wheelhouse-state",
    "wheels",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__)
    parser.add_argument("--clean", action="store_true", help="remove everything that demo and tests made on this machine")
    parser.add_argument("--engine", choices=PLAYS, default="simulated", help="what serves (default: %(default)s)")
    parser.add_argument("--until", type=int, metavar="ACT", help="stop after this act (default: the last)")
    args = parser.parse_args(argv)
    try:
        return clean() if args.clean else demo(args.engine, args.until)
    except InferopsError as exc:
        print(f"\n{exc}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\ninterrupted; the host keeps what it had, `tools/demo` starts afresh, `tools/demo --clean` removes everything",
            file=sys.stderr,
        )
        return 130


def demo(engine: str, until: int | None) -> int:
    """Play the acts in order; the first one that does not end as it must ends the demo."""
    since = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    play = PLAYS[engine]
    python = prepare(real=engine == "sglang")
    theatre = Theatre(python, play.site, start_host(), OUT)
    rows: list[str] = []
    report: Path | None = None
    held = True
    for act in play.acts[:until]:
        judged = Judgement(act.title)
        began = time.monotonic()
        print(f"\n=== Act {act.number}: {act.title}", flush=True)
        act.perform(theatre, judged)
        report = keep_reports() or report
        print(f"\nAct {act.number} judged by what is on the host:\n{judged.text()}", flush=True)
        rows.append(row(play, act, judged, time.monotonic() - began))
        held = judged.holds
        if not held:
            break
    print_table(play, rows, time.monotonic() - since, report, held=held)
    return 0 if held else 1


def row(play: Play, act: Act, judged: Judgement, seconds: float) -> str:
    figures = "  ".join(f"{judged.figures[c]:6.1f}" if c in judged.figures else "     –" for c in play.concurrencies)
    word = "as it must" if judged.holds else "NOT as it must"
    return f"{act.number}    {act.title:<24} {figures}   {seconds:5.0f} s   {word}"


def print_table(play: Play, rows: list[str], seconds: float, report: Path | None, *, held: bool) -> None:
    at = " / ".join(map(str, play.concurrencies))
    print(f"\nact  {'what':<24}  {f'tok/s at {at}':<{8 * len(play.concurrencies)}}     time   ended")
    print("\n".join(rows))
    ended = "All acts ended as they must" if held else "The demo FAILED"
    print(f"\n{ended} after {seconds:.0f} s on {play.on}.")
    if report:
        print(f"Report: {report}")
    here = os.path.relpath(REPOSITORY)
    print(f"The host is still up: {here}/tests/lab/lab exec demo bash. `{here}/tools/demo --clean` removes everything.")


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
