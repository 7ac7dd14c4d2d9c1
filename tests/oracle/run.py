# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Execute SGLang's own argument code on generated command lines and say how the static tier did; status 1 below the bars.

Usage: python tests/oracle/run.py [RELEASE …] [--count 60] [--seed 1] [-v]      execute now
       python tests/oracle/run.py --recorded [RELEASE …]                        score the committed recordings
       python tests/oracle/run.py --record [RELEASE …]                          execute and rewrite the recordings
       python tests/oracle/run.py --record --each-flag --folder DIR --seed 5    recordings of one's own, every flag alone
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bars
import environment
import executor
import recorded
import score as scoring
from generate import HARDWARE, each_flag, generate
from static_tier import read_table

RECORDED = scoring.FIXTURES / "recorded"
# Every shape that the argument code has had, oldest first.
RELEASES = (
    *("0.4.6.post5", "0.4.10.post2", "0.5.3", "0.5.5.post3", "0.5.9", "0.5.10.post1", "0.5.12", "0.5.14"),
    *("0.5.16", "0.5.18", "0.5.19", "0.5.20", "0.5.22", "0.5.23"),
)
RECORDING_SEED = 20261202
LISTS = ("parse_wrong", "outcome_wrong", "outcome_unknown", "twins_wrong", "key_wrong", "wrong", "false_change")


def recording(version: str, folder: Path = RECORDED) -> Path:
    return folder / f"{version}.json"


def recorded_releases(folder: Path = RECORDED) -> list[str]:
    """Return the releases with a recording, oldest first."""
    return [version for version in environment.wheels.PINS if recording(version, folder).exists()]


def read_recording(version: str, folder: Path = RECORDED) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the cases and the real parser's table of a release."""
    content = json.loads(recording(version, folder).read_text(encoding="utf-8"))
    return recorded.unpack(content), content["table"]


def hosts(version: str, seed: int) -> list[str]:
    """Return the story's host and one other: each costs a warm-up of SGLang; over all releases each comes up."""
    story, *others = HARDWARE
    return [story, random.Random(f"{seed} {version}").choice(others)]


def execute_anew(version: str, *, count: int | None, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Generate cases for a release and execute them; cases that this environment cannot execute are left out and counted.

    Without ``count`` there is one case for each flag.
    """
    place = environment.ensure(version)
    table = executor.flag_table(place, version)
    where = hosts(version, seed)
    if count is None:
        cases = each_flag(version, table, place.package, seed=seed, hardware=where)
    else:
        cases = generate(version, table, place.package, seed=seed, count=count, hardware=where)
    executed = executor.execute(place, cases)
    lost = [case for case in executed if case["outcome"] == "not_executed"]
    if lost:
        print(
            f"{version}: {len(lost)} of {len(executed)} cases not executed, such as {lost[0]['id']}: {lost[0]['message'][-200:]}"
        )
    halves = recorded.halves(executed)
    kept = [recorded.trim(case, scoring.KEY, half=case["id"] in halves) for case in executed if case["outcome"] != "not_executed"]
    return sorted(kept, key=lambda case: str(case["id"])), table


def judge(version: str, cases: list[dict[str, Any]], table: Mapping[str, Any], *, verbose: bool) -> list[str]:
    """Score one release with facts and without, print what came out, return the bars it does not reach."""
    resolve = scoring.resolver({version: environment.unpack(version)})
    with_facts, without = scoring.score(cases, resolve), scoring.score(cases, resolve, informed=False)
    flags = bars.score_table(read_table(environment.unpack(version)), table)
    print(_line(version, flags, with_facts, without), flush=True)
    short = [*bars.short_of(with_facts, flags), *bars.short_uninformed(without)]
    for line in short:
        print(f"{'':12} below the bar: {line}")
    if verbose:
        for title in LISTS:
            for line in getattr(with_facts, title):
                print(f"{'':12} {title}: {line}")
        for line in _by_field(with_facts.undecided):
            print(f"{'':12} undecided: {line}")
        for title in ("false_fatal", "wrong", "false_change"):
            for line in getattr(without, title):
                print(f"{'':12} no facts, {title}: {line}")
        for line in (*flags.missing, *flags.surplus, *flags.wrong_choices):
            print(f"{'':12} flag table: {line}")
    return short


def _by_field(lines: Iterable[str]) -> list[str]:
    """Return one line per field that stayed open, the most frequent first, each with a case."""
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _colon, text = line.partition(": ")
        found.setdefault(text.partition(" ")[0], []).append(name)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{field} in {len(names)} cases, such as {names[0]}" for field, names in ordered]


COLUMNS = (
    *(("strings", 8), ("choices", 9), ("parse", 7), ("ok/fatal", 8), ("missed", 6), ("false", 5)),
    *(("changed right/wrong/open", 24), ("key right/wrong/open", 20), ("false change", 12), ("twins", 6)),
    *(("no facts: wrong", 15), ("s max", 5)),
)


def _row(first: str, cells: Iterable[str]) -> str:
    return f"{first:12} " + " ".join(cell.rjust(width) for cell, (_name, width) in zip(cells, COLUMNS, strict=True))


def _line(version: str, flags: bars.TableScore, one: scoring.Score, blind: scoring.Score) -> str:
    cells = (
        f"{flags.strings - len(flags.missing) - len(flags.surplus)}/{flags.strings}",
        f"{flags.choices - len(flags.wrong_choices)}/{flags.choices}",
        f"{one.parse_right}/{one.cases}",
        f"{one.judged_right}/{one.judged}",
        f"{one.judged - one.judged_right - len(one.false_fatal)}",
        f"{len(one.false_fatal)}",
        f"{one.right}/{len(one.wrong)}/{len(one.undecided)}",
        f"{one.key_right}/{len(one.key_wrong)}/{len(one.key_undecided)}",
        f"{len(one.false_change)}",
        f"{one.twins_right}/{one.twins_right + len(one.twins_wrong)}",
        f"{len(blind.wrong) + len(blind.false_change)}",
        f"{max(one.seconds, default=0.0):.2f}",
    )
    return _row(version, cells)


def kept_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded of a parser; choices in order, since a release may take them from a set."""
    actions = [(one["flags"], one["choices"]) for one in table["actions"]]
    return {
        "version": table["version"],
        "actions": [{"flags": flags, "choices": choices and sorted(choices)} for flags, choices in actions],
    }


def record(version: str, *, count: int | None, seed: int, folder: Path) -> None:
    cases, table = execute_anew(version, count=count, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = recording(version, folder)
    path.write_text(recorded.text(cases, kept_of(table)), encoding="utf-8")
    print(f"{version}: {len(cases)} cases recorded, {path.stat().st_size >> 10} KiB", flush=True)


def main(argv: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="default: one of each shape")
    parser.add_argument("--count", type=int, default=60, help="cases per release")
    parser.add_argument("--each-flag", action="store_true", help="one case for each flag of the release instead")
    parser.add_argument("--seed", type=int, help=f"default: 1, for --record {RECORDING_SEED}")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--folder", type=Path, default=RECORDED, help="where recordings lie (default: those in the repository)")
    parser.add_argument("-v", "--verbose", action="store_true", help="every case that is not right")
    options = parser.parse_args(None if argv is None else list(argv))
    count = None if options.each_flag else options.count
    seed = options.seed if options.seed is not None else RECORDING_SEED if options.record else 1
    below = 0
    try:
        if not options.record:
            print(_row("release", (name for name, _width in COLUMNS)))
        for version in options.releases or (recorded_releases(options.folder) if options.recorded else RELEASES):
            if options.record:
                record(version, count=count, seed=seed, folder=options.folder)
                continue
            made = read_recording(version, options.folder) if options.recorded else execute_anew(version, count=count, seed=seed)
            below += bool(judge(version, *made, verbose=options.verbose))
    except environment.InferopsError as exc:
        print(exc, file=sys.stderr)
        return 2
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
