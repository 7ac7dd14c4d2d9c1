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
from .load_words import load_words
from .plan import GatePlan
from .report import write_reports
from .run import run_gate

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
        on_progress=lambda line: print(line["text"], file=sys.stderr, flush=True),
        should_stop=stop.is_set,
    )
    print(json.dumps(result, ensure_ascii=False) if options.format == "json" else summary(result, out))
    return STATUS[result["verdict"]]


def summary(result: dict[str, Any], out: Path) -> str:
    """Return the verdict, one line per point and limit, and where the report lies."""
    lines = [f"verdict: {result['verdict']}"]
    for point in result["points"]:
        rate, ci = point["output_tokens_per_s"], point["ci"]
        shown = "nothing measured" if rate is None else f"{rate:.1f} tok/s"
        interval = "" if ci is None else f" ({ci[0]:.1f} … {ci[1]:.1f})"
        lines.append(f"  {load_words(point):<15}: {shown}{interval}{_bound_text(point)}: {point['verdict']}")
        if point.get("headroom"):
            lines.append(f"                   {point['headroom']}")
    lines += [f"  reason: {reason}" for reason in result["reasons"]]
    lines += [f"  {item['code']}: {item['message']}" for item in result["diagnosis"]]
    lines += [f"  note: {note}" for note in result["notes"]]
    if any(point["bound_tokens_per_s"] is not None for point in result["points"]):
        lines += [f"  bound: {line}" for line in result["bound"]["assumptions"]]
    lines.append(f"report: {out / 'report.html'}")
    return "\n".join(lines)


def _bound_text(point: dict[str, Any]) -> str:
    fillings = point.get("fillings")
    if not fillings:
        return ""
    text = f", bound {fillings['filled_tokens_per_s']:.0f}"
    if "serial_tokens_per_s" not in fillings or point["concurrency"] == 1:
        return text
    return (
        f"{text} ({fillings['filled']}; one request each {fillings['one_each_tokens_per_s']:.0f}, "
        f"all in one {fillings['serial_tokens_per_s']:.0f})"
    )


def _report(options: argparse.Namespace) -> int:
    if not options.folder.is_dir():
        raise InferopsError("there is no such result folder", where=str(options.folder), do="give the folder a gate wrote")
    write_reports(options.folder)
    print(options.folder / "report.html")
    return 0


def _compare(options: argparse.Namespace) -> int:
    comparison = compare_results(read_result(options.a), read_result(options.b))
    if options.format == "json":
        print(json.dumps(comparison, ensure_ascii=False))
    else:
        print("\n".join(comparison["lines"]))
    return 0 if comparison["comparable"] else 1
