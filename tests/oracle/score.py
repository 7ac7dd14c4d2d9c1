# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Score the static resolution against executed cases: what SGLang did, field by field.

A case was made by running the named release's own argument code.
Usage: python tests/oracle/score.py --source 0.5.23=PATH [--cases FILE] [-v]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import recorded
from cards import HARDWARE
from static_tier import Resolve, resolver

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "oracle"
KEY = [
    "cuda_graph_config.decode.backend",
    "cuda_graph_config.prefill.backend",
    "disable_cuda_graph",
    "disable_piecewise_cuda_graph",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "chunked_prefill_size",
    "page_size",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "pp_size",
    "pp_async_batch_depth",
]
_LONG = re.compile(r"list of (\d+): (-?\d+)\.\.(-?\d+)")
MISSING = object()


def facts_of(hardware: str) -> dict[str, Any]:
    return HARDWARE[hardware].facts()


def same(expected: Any, got: Any) -> bool:
    """Compare as the cases write values: long lists of integers by length and ends, sets sorted as text, all else exactly."""
    if isinstance(expected, str) and isinstance(got, list):
        match = _LONG.fullmatch(expected)
        return bool(match) and [len(got), got[0], got[-1]] == [int(one) for one in match.groups()]  # type: ignore[union-attr]
    if isinstance(expected, bool) != isinstance(got, bool):
        return False
    return bool(expected == got)


@dataclass
class Score:
    """Counts over cases; the lists hold what to look at."""

    cases: int = 0
    parse_right: int = 0
    parse_wrong: list[str] = field(default_factory=list)
    twins_right: int = 0
    twins_wrong: list[str] = field(default_factory=list)
    # Of the cases that the release's parser let pass: those whose verdict, ok or fatal with its message, is right.
    judged: int = 0
    judged_right: int = 0
    outcome_right: int = 0
    outcome_wrong: list[str] = field(default_factory=list)
    outcome_unknown: list[str] = field(default_factory=list)
    false_fatal: list[str] = field(default_factory=list)
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    quiet: int = 0
    false_change: list[str] = field(default_factory=list)
    quiet_undecided: list[str] = field(default_factory=list)
    key_right: int = 0
    key_wrong: list[str] = field(default_factory=list)
    key_undecided: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def changed(self) -> int:
        return self.right + len(self.wrong) + len(self.undecided)


def load(path: Path) -> list[dict[str, Any]]:
    return recorded.unpack(json.loads(path.read_text(encoding="utf-8")))


def model_of(name: str, folder: Path = FIXTURES) -> dict[str, Any]:
    return json.loads((folder / "models" / name / "config.json").read_text(encoding="utf-8"))


def score(cases: Iterable[Mapping[str, Any]], resolve: Resolve, folder: Path = FIXTURES, *, informed: bool = True) -> Score:
    """Run ``resolve`` on every case; it returns a Resolution or a text: the parse error.

    Not ``informed``: nothing is known of host and model.
    """
    total, results, given = Score(), {}, list(cases)
    for case in given:
        facts = facts_of(case["hardware"]) if informed else {}
        model = model_of(case["model_config"], folder) if informed else None
        more = {key: case[key] for key in ("env", "files") if case.get(key)}
        start = time.perf_counter()
        result = resolve(case["sglang_version"], list(case["argv"]), facts, model, **more)
        total.seconds.append(time.perf_counter() - start)
        results[case["id"]] = result
        _add(total, case, result)
    by_name = {case["id"]: case for case in given}
    for case in given:
        if case.get("twin") in by_name:
            _twins(total, case, by_name[case["twin"]], results)
    return total


def _twins(total: Score, case: Mapping[str, Any], other: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Does the switch change any key setting? Both sides must be executable to tell."""
    if case["outcome"] != "ok" or other["outcome"] != "ok":
        return
    wanted = _difference(case["effective"], other["effective"])
    with_it, without_it = results[case["id"]], results[other["id"]]
    if isinstance(with_it, str) or isinstance(without_it, str):
        got: Any = "not parsed"
    else:
        open_fields = {one["field"] for side in (with_it, without_it) for one in side.undecided} & set(KEY)
        got = f"undecided: {sorted(open_fields)}" if open_fields else _difference(with_it.effective, without_it.effective)
    if got == wanted:
        total.twins_right += 1
    else:
        total.twins_wrong.append(f"{case['id']}: {' '.join(case['argv'])}: wanted {wanted}, got {got}")


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [one.get(name), other.get(name)] for name in KEY if one.get(name) != other.get(name)}


def _add(total: Score, case: Mapping[str, Any], result: Any) -> None:
    total.cases += 1
    outcome = "parse_error" if isinstance(result, str) else result.outcome
    message = result if isinstance(result, str) else result.message
    name = case["id"]
    refused = "parse_error"
    if (outcome == refused) == (case["outcome"] == refused) and (outcome != refused or _message_fits(case, message)):
        total.parse_right += 1
    else:
        total.parse_wrong.append(f"{name}: {case['argv'][2:]} wanted {case.get('message_contains')!r}, got {message!r}")
    right = outcome == case["outcome"] and _message_fits(case, message)
    if case["outcome"] != refused:
        total.judged += 1
        total.judged_right += right
    if right:
        total.outcome_right += 1
    elif outcome == "unknown":
        total.outcome_unknown.append(f"{name}: wanted {case['outcome']}, doubt: {message} [{result.source}]")
    else:
        total.outcome_wrong.append(
            f"{name}: wanted {case['outcome']} {case.get('message_contains')!r}, got {outcome} {message!r}"
        )
        if case["outcome"] == "ok":
            total.false_fatal.append(name)
    if case["outcome"] == "ok" and outcome in ("ok", "unknown"):
        _fields(total, case, result)


def _message_fits(case: Mapping[str, Any], message: str | None) -> bool:
    wanted = case.get("message_contains")
    if case["outcome"] == "ok" or not wanted:
        return True
    return bool(message) and (wanted[:60] in message or message[:60] in wanted)  # type: ignore[index]


def _fields(total: Score, case: Mapping[str, Any], result: Any) -> None:
    open_fields = {one["field"] for one in result.undecided}
    # The cases carry the two unset defaults of secrets; a report never does.
    wanted = {name: pair for name, pair in case["changed"].items() if not name.startswith("_") and not _noise(name)}
    for name, (_before, after) in wanted.items():
        got = result.changed[name]["to"] if name in result.changed else result.effective.get(name, MISSING)
        told = "nothing" if got is MISSING else str(got)[:60]
        line = f"{case['id']}: {name} wanted {str(after)[:60]} got {told}"
        key = name in KEY
        if name in open_fields:
            total.undecided.append(line)
            total.key_undecided += [line] if key else []
        elif name in result.changed and same(after, got):
            total.right += 1
            total.key_right += key
        else:
            total.wrong.append(line)
            total.key_wrong += [line] if key else []
    for name in result.changed:
        if name not in wanted:
            one = result.changed[name]
            line = f"{case['id']}: {name} {one['from']!r:.40} -> {one['to']!r:.40} ({one['source']})"
            total.false_change.append(line)
            total.key_wrong += [line] if name in KEY else []
    total.quiet_undecided += [f"{case['id']}: {name}" for name in open_fields if name not in wanted]
    total.key_undecided += [f"{case['id']}: {name}" for name in open_fields if name not in wanted and name in KEY]
    total.quiet += len(result.effective) - len(result.changed)


def _noise(name: str) -> bool:
    return name in ("random_seed", "port", "nccl_port", "launch_command")


def table(scores: Mapping[str, Score]) -> str:
    lines = [
        f"{'release':12} {'cases':>5} {'parse':>9} {'twins':>7} {'outcome right/wrong/open':>24} {'false fatal':>11} "
        f"{'changed right/wrong/open':>24} {'key right/wrong/open':>20} {'unchanged kept/false/open':>25} {'s mean/max':>10}"
    ]
    for version, one in scores.items():
        seconds = one.seconds or [0.0]
        cells = (
            (f"{one.parse_right}/{one.cases}", 9),
            (f"{one.twins_right}/{one.twins_right + len(one.twins_wrong)}", 7),
            (f"{one.outcome_right}/{len(one.outcome_wrong)}/{len(one.outcome_unknown)}", 24),
            (str(len(one.false_fatal)), 11),
            (f"{one.right}/{len(one.wrong)}/{len(one.undecided)}", 24),
            (f"{one.key_right}/{len(one.key_wrong)}/{len(one.key_undecided)}", 20),
            (f"{one.quiet}/{len(one.false_change)}/{len(one.quiet_undecided)}", 25),
            (f"{sum(seconds) / len(seconds):.2f}/{max(seconds):.2f}", 10),
        )
        lines.append(f"{version:12} {one.cases:>5} " + " ".join(text.rjust(width) for text, width in cells))
    return "\n".join(lines)


def main() -> int:
    one = argparse.ArgumentParser(description=__doc__)
    one.add_argument("--source", action="append", required=True, metavar="VERSION=PATH")
    one.add_argument("--cases", type=Path, default=FIXTURES / "cases.json")
    one.add_argument("--only", default="", help="part of a case's id")
    one.add_argument("-v", "--verbose", action="store_true")
    options = one.parse_args()
    sources = {version: Path(path) for version, _, path in (pair.partition("=") for pair in options.source)}
    run = resolver(sources)
    cases = [case for case in load(options.cases) if options.only in case["id"]]
    scores = {version: score([case for case in cases if case["sglang_version"] == version], run) for version in sources}
    print(table(scores))
    for version, result in scores.items():
        for title in (
            "parse_wrong",
            "twins_wrong",
            "outcome_wrong",
            "outcome_unknown",
            "key_wrong",
            "wrong",
            "false_change",
            "key_undecided",
            "undecided",
        ):
            found = getattr(result, title)
            for line in found if options.verbose else ():
                print(f"{version} {title}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
