# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Subcommands of the gate area: gate, report, compare."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .compare import compare_results
from .context import GateContext
from .files import read_key, read_mapping, read_result
from .plan import GatePlan
from .report import write_reports
from .run import run_gate
from .terminal import summary

STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    gate = commands.add_parser("gate", help="put load on a running server and judge it against a plan")
    gate.add_argument("--base-url", required=True, help="address of the server, such as http://127.0.0.1:30000")
    gate.add_argument("--plan", required=True, type=Path, help="gate plan, JSON or YAML")
    gate.add_argument("--out", type=Path, help="result folder (default: gate-<time> here)")
    gate.add_argument("--model-config", type=Path, help="config.json of the model, for the bound")
    gate.add_argument("--facts", type=Path, help="FACTS.json; gpu_bandwidth_gb_s is used for the bound")
    gate.add_argument("--context", type=Path, help=argparse.SUPPRESS)
    gate.add_argument("--api-key-file", type=Path, help="file with the API key (or the environment variable INFEROPS_API_KEY)")
    gate.add_argument("--format", choices=["text", "json"], default="text")
    gate.set_defaults(run=_gate)
    report = commands.add_parser("report", help="render report.html, report.md and junit.xml of a result folder")
    report.add_argument("folder", type=Path)
    report.set_defaults(run=_report)
    compare = commands.add_parser("compare", help="compare two gate results, or say why they cannot be compared")
    compare.add_argument("a", type=Path, metavar="A", help="result folder or result.json")
    compare.add_argument("b", type=Path, metavar="B")
    compare.add_argument("--any-engine", action="store_true", help="also two versions of SGLang, when an upgrade is the question")
    compare.add_argument("--format", choices=["text", "json"], default="text")
    compare.set_defaults(run=_compare)


def _gate(options: argparse.Namespace) -> int:
    plan = GatePlan.from_dict(read_mapping(options.plan, "plan"))
    facts = {} if options.facts is None else read_mapping(options.facts, "facts")
    given = {} if options.context is None else read_mapping(options.context, "context")
    if options.model_config is not None:
        given["model_config"] = read_mapping(options.model_config, "model config")
    given.setdefault("bandwidth_gb_s", facts.get("gpu_bandwidth_gb_s"))
    given.setdefault("gpu_count", facts.get("gpu_count"))
    out = options.out if options.out is not None else Path(time.strftime("gate-%Y%m%d-%H%M%S"))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    result = run_gate(
        options.base_url,
        plan,
        out,
        api_key=read_key(options.api_key_file, os.environ),
        context=GateContext.from_dict(given),
        on_progress=_say if options.format == "json" else _say_all_but_the_table,
        should_stop=stop.is_set,
    )
    print(json.dumps(result, ensure_ascii=False) if options.format == "json" else summary(result, out))
    return STATUS[result["verdict"]]


def _say(line: dict[str, Any]) -> None:
    print(line["text"], file=sys.stderr, flush=True)


def _say_all_but_the_table(line: dict[str, Any]) -> None:
    """The table comes once more on standard output, with all that belongs to it."""
    if line["state"] != "table":
        _say(line)


def _report(options: argparse.Namespace) -> int:
    if not options.folder.is_dir():
        raise InferopsError("there is no such result folder", where=str(options.folder), do="give the folder a gate wrote")
    write_reports(options.folder)
    print(options.folder / "report.html")
    return 0


def _compare(options: argparse.Namespace) -> int:
    comparison = compare_results(read_result(options.a), read_result(options.b), same_engine=not options.any_engine)
    if options.format == "json":
        print(json.dumps(comparison, ensure_ascii=False))
    else:
        print("\n".join(comparison["lines"]))
    return 0 if comparison["comparable"] else 1
