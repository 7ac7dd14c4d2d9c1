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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "oracle"
# name: (device name, compute capability, memory of one card [MiB], cards), as the cases' harness fakes them
HARDWARE = {
    "8xRTXPRO6000": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 97887, 8),
    "8xH200": ("NVIDIA H200", 90, 143771, 8),
    "8xB200": ("NVIDIA B200", 100, 183359, 8),
    "8xA100": ("NVIDIA A100-SXM4-80GB", 80, 81920, 8),
    "8xL4": ("NVIDIA L4", 89, 23034, 8),
    "1xL4": ("NVIDIA L4", 89, 23034, 1),
}
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
    name, sm, memory, count = HARDWARE[hardware]
    return {"platform": "cuda", "gpu_name": name, "gpu_count": count, "sm": sm, "gpu_memory_mib": memory}


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


Resolve = Callable[[str, list[str], dict[str, Any], dict[str, Any]], Any]


def load(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))


def model_of(name: str, folder: Path = FIXTURES) -> dict[str, Any]:
    return json.loads((folder / "models" / name / "config.json").read_text(encoding="utf-8"))


def score(cases: Iterable[Mapping[str, Any]], resolve: Resolve, folder: Path = FIXTURES) -> Score:
    """Run ``resolve(version, argv, facts, model_config)`` on every case. It returns a Resolution or a text: the parse error."""
    total = Score()
    for case in cases:
        start = time.perf_counter()
        result = resolve(
            case["sglang_version"], list(case["argv"]), facts_of(case["hardware"]), model_of(case["model_config"], folder)
        )
        total.seconds.append(time.perf_counter() - start)
        _add(total, case, result)
    return total


def _add(total: Score, case: Mapping[str, Any], result: Any) -> None:
    total.cases += 1
    outcome = "parse_error" if isinstance(result, str) else result.outcome
    message = result if isinstance(result, str) else result.message
    name = case["id"]
    if outcome == case["outcome"] and _message_fits(case, message):
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
        line = f"{case['id']}: {name} wanted {str(after)[:60]} got {str(got)[:60]}"
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
    head = (
        "release    cases  outcome right/wrong/unknown  false fatal  changed right/wrong/undecided  "
        "key right/wrong/undecided  unchanged kept/false/undecided  s mean/max"
    )
    lines = [head]
    for version, one in scores.items():
        seconds = one.seconds or [0.0]
        lines.append(
            f"{version:<10} {one.cases:>5}  {one.outcome_right:>13}/{len(one.outcome_wrong)}/{len(one.outcome_unknown):<12} "
            f"{len(one.false_fatal):>11}  {one.right:>13}/{len(one.wrong)}/{len(one.undecided):<12} "
            f"{one.key_right:>11}/{len(one.key_wrong)}/{len(one.key_undecided):<10} "
            f"{one.quiet:>13}/{len(one.false_change)}/{len(one.quiet_undecided):<10} "
            f"{sum(seconds) / len(seconds):.2f}/{max(seconds):.2f}"
        )
    return "\n".join(lines)


def resolver(sources: Mapping[str, Path]) -> Resolve:
    """Return a function that parses and resolves with our static tier, one open source per release."""
    if str(ROOT / ".collections") not in sys.path:
        sys.path.insert(0, str(ROOT / ".collections"))
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import Facts
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret import resolve
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source

    trees = {version: open_source(path) for version, path in sources.items()}
    tables = {version: read_flags(tree) for version, tree in trees.items()}

    def run(version: str, argv: list[str], facts: dict[str, Any], model: dict[str, Any] | None) -> Any:
        try:
            parsed = parse(tables[version], argv)
        except ArgvError as exc:
            return str(exc)
        return resolve(trees[version], tables[version], parsed, Facts.from_dict(facts), model, {})

    return run


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
        for title in ("outcome_wrong", "outcome_unknown", "key_wrong", "wrong", "false_change", "key_undecided", "undecided"):
            found = getattr(result, title)
            for line in found if options.verbose else ():
                print(f"{version} {title}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
