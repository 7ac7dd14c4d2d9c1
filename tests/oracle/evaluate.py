# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the table of docs/how-the-check-works.md: new command lines, executed by SGLang's own code, against the static tier.

What was executed is kept in the cache by release, seed and count, so that a changed static tier is scored anew in minutes.
Usage: python tests/oracle/evaluate.py --seed 4711 [--count 80] [--cost 8] [RELEASE …]       prints it
       python tests/oracle/evaluate.py --seed 4711 --write                                  and puts it into the page
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bars
import environment
import run as oracle
import score as scoring
from static_tier import read_table

PAGE = scoring.ROOT / "docs" / "how-the-check-works.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
# All shapes, and as few as possible of the releases that the committed recordings are of.
RELEASES = (
    *("0.4.6.post5", "0.4.10.post2", "0.5.3", "0.5.6.post2", "0.5.9", "0.5.10", "0.5.12", "0.5.15", "0.5.16"),
    *("0.5.18", "0.5.19", "0.5.21", "0.5.23"),
)
_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
HEADER = (
    *("release", "cases", "flags", "choices", "parse verdict", "ok or fatal", "false fatal", "changed fields", "key settings"),
    *("false changes", "with/without", "no facts", "CPU s", "MiB"),
)


@dataclass(frozen=True)
class Cost:
    """What checks cost as processes of their own: processor time [s] of each, memory of the largest [MiB]."""

    seconds: tuple[float, ...] = ()
    mib: float = 0.0
    slowest: str = ""


def executed(version: str, *, seed: int, count: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the executed cases and the real parser's table; executed now only where the cache has none of this kind."""
    makers = [Path(__file__).with_name(name) for name in ("generate.py", "flag_values.py", "shared_rules.py", "execute.py")]
    folder = environment.cache("oracle", "executed", f"{seed}-{count}-{environment.digest(makers)}")
    if not oracle.recording(version, folder).exists():
        oracle.record(version, count=count, seed=seed, folder=folder)
    return oracle.read_recording(version, folder)


def cost(version: str, cases: Sequence[Mapping[str, Any]], seconds: Sequence[float], *, sample: int) -> Cost:
    """Check cases in fresh processes: ``sample`` drawn ones for the mean, and the ``sample`` that took longest before."""
    if not sample:
        return Cost()
    drawn = random.Random(version).sample(range(len(cases)), min(sample, len(cases)))
    longest = sorted(range(len(cases)), key=lambda index: -seconds[index])[:sample]
    spent = {index: _checked(version, cases[index]) for index in {*drawn, *longest}}
    slowest = max(spent, key=lambda index: spent[index][0])
    return Cost(
        (statistics.fmean(spent[index][0] for index in drawn), spent[slowest][0]),
        max(mib for _seconds, mib in spent.values()),
        cases[slowest]["id"],
    )


def _checked(version: str, case: Mapping[str, Any]) -> tuple[float, float]:
    """Return processor time [s] and peak memory [MiB] of ``inferops check`` on one case, nothing of it cached."""
    model = scoring.FIXTURES / "models" / case["model_config"] / "config.json"
    with tempfile.TemporaryDirectory() as folder:
        argv = [word.replace("@models", str(scoring.FIXTURES / "models")) for word in case["argv"]]
        facts = Path(folder) / "facts.json"
        facts.write_text(json.dumps(scoring.facts_of(case["hardware"])))
        for name, text in case.get("files", {}).items():
            (Path(folder) / name).write_text(text)
        told = [word for name, value in case.get("env", {}).items() for word in ("--env", f"{name}={value}")]
        words = ["check", "--source", environment.wheels.fetch(version), "--facts", facts, "--model", model, *told]
        modules = str(environment.REPOSITORY / "plugins" / "module_utils")
        told_where = {"PYTHONPATH": modules, "XDG_CACHE_HOME": folder}
        command = [sys.executable, "-m", "_core.program", *map(str, words), "--format", "json", "--", *argv]
        return measured(command, cwd=folder, env={**os.environ, **told_where})


def measured(command: Sequence[str], **how: Any) -> tuple[float, float]:
    """Return processor time [s] and peak memory [MiB] of a process.

    A small one starts it: the peak that a new process begins with is the size of the one that it comes from.
    """
    made = subprocess.run([sys.executable, "-S", "-c", _MEASURE, *command], stdout=subprocess.PIPE, check=True, text=True, **how)
    seconds, kib = made.stdout.split()
    return float(seconds), int(kib) / 1024


def row(version: str, cases: list[dict[str, Any]], table: Mapping[str, Any], *, sample: int) -> tuple[list[str], list[str]]:
    """Return the cells of one release, and the bars that it does not reach."""
    source = environment.unpack(version)
    resolve = scoring.resolver({version: source})
    one, blind = scoring.score(cases, resolve), scoring.score(cases, resolve, informed=False)
    flags = bars.score_table(read_table(source), table)
    spent = cost(version, cases, one.seconds, sample=sample)
    cells = [
        version,
        str(one.cases),
        f"{flags.strings - len(flags.missing) - len(flags.surplus)}/{flags.strings}",
        f"{flags.choices - len(flags.wrong_choices)}/{flags.choices}",
        f"{one.parse_right}/{one.cases}",
        f"{one.judged_right}/{one.judged}",
        str(len(one.false_fatal)),
        _three(one.right, one.wrong, one.undecided),
        _three(one.key_right, one.key_wrong, one.key_undecided),
        str(len(one.false_change)),
        f"{one.twins_right}/{one.twins_right + len(one.twins_wrong)}",
        f"{len(blind.wrong) + len(blind.false_change)}/{blind.changed}",
        " … ".join(f"{seconds:.2f}" for seconds in spent.seconds) or "–",
        f"{spent.mib:.0f}" if spent.mib else "–",
    ]
    short = [*bars.short_of(one, flags), *bars.short_uninformed(blind)]
    return cells, [f"{version}: {line}" for line in short] + [f"{version}: slowest {spent.slowest}"] * bool(spent.slowest)


def _three(right: int, wrong: Sequence[str], undecided: Sequence[str]) -> str:
    return f"{right}/{len(wrong)}/{len(undecided)}"


def markdown(rows: Iterable[Sequence[str]], *, seed: int, count: int, cost: int = 8, releases: Sequence[str] = ()) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    words = ("--seed", seed, "--count", count, "--cost", cost, "--write", *releases)
    command = f"python tests/oracle/evaluate.py {' '.join(map(str, words))}"
    return f"Seed {seed}, {count} command lines for each release, made by `{command}`:\n\n" + "".join(
        f"| {' | '.join(cells)} |\n" for cells in lines
    )


def put(text: str, page: Path = PAGE) -> None:
    """Replace what stands between the marks of the page. Raises ValueError where they are not there."""
    before, _begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{page} has no {BEGIN.strip()} … {END.strip()}")
    page.write_text(before + BEGIN + text + END + after, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="default: thirteen, every shape among them")
    parser.add_argument("--seed", type=int, required=True, help="one that nobody has looked at")
    parser.add_argument("--count", type=int, default=80, help="command lines per release")
    parser.add_argument("--cost", type=int, default=0, metavar="N", help="check N drawn and the N slowest in fresh processes")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args(argv)
    rows, below = [], []
    try:
        for version in options.releases or RELEASES:
            cells, short = row(version, *executed(version, seed=options.seed, count=options.count), sample=options.cost)
            print(" | ".join(cells), *short, sep="\n    ", flush=True)
            rows.append(cells)
            below += [line for line in short if ": slowest" not in line]
    except environment.InferopsError as exc:
        print(exc, file=sys.stderr)
        return 2
    if options.write:
        put(markdown(rows, seed=options.seed, count=options.count, cost=options.cost, releases=options.releases))
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
