# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""inferops memory: weights, cache tokens and bounds of a model on given cards, before anything is started."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .arguments import SizeArguments, read_argv
from .memory import MemoryPlan, plan_memory
from .model import ModelShape
from .roofline import BYTES_PER_GB, best_filling
from .stages import PARTITION_ENV

FINE, DOES_NOT_FIT, UNKNOWN = 0, 1, 3
CONCURRENCIES = (1, 8, 16, 32)


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    memory = commands.add_parser("memory", help="per-stage weights, KV tokens, headroom and bounds")
    memory.add_argument("--model", required=True, type=Path, metavar="CONFIG.json")
    memory.add_argument("--facts", type=Path, metavar="FACTS.json")
    memory.add_argument("--source", type=Path, metavar="PATH|WHEEL", help="read ARGV by this release's own flag table")
    memory.add_argument("--env", action="append", default=[], metavar="K=V", help=f"such as {PARTITION_ENV}=8,8,8,8,8,7,7,7")
    memory.add_argument("--format", choices=("text", "json"), default="text")
    memory.add_argument("argv", nargs="*", metavar="-- ARGV", help="launch arguments after --")
    memory.set_defaults(run=run_memory)


def run_memory(namespace: argparse.Namespace) -> int:
    """Print the plan; 0 fits, 1 does not fit, 3 cannot be told from what was given."""
    shape = ModelShape.from_config(load_json(namespace.model, "--model"))
    # Imported here: facts belong to the args area, which need not be read for the other uses of this one.
    from ..args.facts import Facts

    facts = Facts.from_dict(load_json(namespace.facts, "--facts") if namespace.facts else {})
    env = dict(pair.split("=", 1) for pair in namespace.env if "=" in pair)
    sizes = _sizes(namespace)
    partition = env.get(PARTITION_ENV)
    plan = plan_memory(
        shape,
        tp_size=sizes.tp_size,
        pp_size=sizes.pp_size,
        partition=partition,
        gpu_memory_mib=facts.gpu_memory_mib,
        mem_fraction_static=sizes.mem_fraction_static,
        kv_cache_dtype=sizes.kv_cache_dtype,
    )
    bounds = []
    for concurrency in CONCURRENCIES:
        filling = best_filling(
            shape,
            tp_size=sizes.tp_size,
            pp_size=sizes.pp_size,
            concurrency=concurrency,
            bandwidth_gb_s=facts.gpu_bandwidth_gb_s,
            kv_cache_dtype=sizes.kv_cache_dtype,
        )
        bounds.append(
            {"concurrency": concurrency, "bound_tokens_per_s": None if filling is None else round(filling.tokens_per_s, 1)}
        )
    report = as_dict(plan, shape, sizes, bounds)
    print(json.dumps(report, indent=1) if namespace.format == "json" else as_text(report))
    if plan.fits is None:
        return UNKNOWN
    return FINE if plan.fits else DOES_NOT_FIT


def as_dict(plan: MemoryPlan, shape: ModelShape, sizes: SizeArguments, bounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan as JSON values; what cannot be told is null."""
    return {
        "architecture": shape.architecture,
        "weights_bytes": None if shape.weights_bytes is None else round(shape.weights_bytes),
        "uncounted": list(shape.uncounted),
        "pp_size": sizes.pp_size,
        "tp_size": sizes.tp_size,
        "mem_fraction_static": sizes.mem_fraction_static,
        "kv_cache_dtype": sizes.kv_cache_dtype,
        "card_bytes": None if plan.card_bytes is None else round(plan.card_bytes),
        "fits": plan.fits,
        "kv_tokens": plan.kv_tokens,
        "tightest_stage": plan.tightest.pp_rank,
        "stages": [
            {
                "pp_rank": stage.pp_rank,
                "layers": stage.layers,
                "weights_bytes": round(stage.weights_bytes),
                "kv_bytes_per_token": stage.kv_bytes_per_token,
                "kv_pool_bytes": None if stage.kv_pool_bytes is None else round(stage.kv_pool_bytes),
                "kv_tokens": stage.kv_tokens,
            }
            for stage in plan.stages
        ],
        "bounds": bounds,
    }


def as_text(report: Mapping[str, Any]) -> str:
    """Return the plan for people."""

    def gigabytes(value: float | None) -> str:
        return "–" if value is None else f"{value / BYTES_PER_GB:.1f} GB"

    lines = [
        f"{report['architecture']}: {gigabytes(report['weights_bytes'])} of weights, "
        f"pp_size {report['pp_size']}, tp_size {report['tp_size']}, KV cache {report['kv_cache_dtype']}"
    ]
    if report["uncounted"]:
        lines.append(f"not counted: {', '.join(report['uncounted'])}")
    lines.append("")
    lines.append(f"{'stage':>5} {'layers':>6} {'weights':>9} {'KV/token':>9} {'KV room':>9} {'KV tokens':>10}")
    for stage in report["stages"]:
        kv = "–" if stage["kv_bytes_per_token"] is None else f"{stage['kv_bytes_per_token']:,.0f} B"
        tokens = "–" if stage["kv_tokens"] is None else f"{stage['kv_tokens']:,}"
        mark = "  tightest" if stage["pp_rank"] == report["tightest_stage"] and len(report["stages"]) > 1 else ""
        lines.append(
            f"{stage['pp_rank']:>5} {stage['layers']:>6} {gigabytes(stage['weights_bytes']):>9} {kv:>9} "
            f"{gigabytes(stage['kv_pool_bytes']):>9} {tokens:>10}{mark}"
        )
    lines += ["", *_verdict(report)]
    known = [
        f"{row['bound_tokens_per_s']:.0f} at {row['concurrency']}"
        for row in report["bounds"]
        if row["bound_tokens_per_s"] is not None
    ]
    lines.append(
        f"bound: {', '.join(known)} in flight [tok/s]" if known else "bound: unknown (gpu_bandwidth_gb_s is not in the facts)"
    )
    return "\n".join(lines)


def _verdict(report: Mapping[str, Any]) -> list[str]:
    tightest = report["stages"][report["tightest_stage"]]
    if report["fits"] is False:
        limit = report["card_bytes"] * (report["mem_fraction_static"] or 1)
        return [
            f"does not fit: stage {tightest['pp_rank']} needs {tightest['weights_bytes'] / BYTES_PER_GB:.1f} GB per card, "
            f"{limit / BYTES_PER_GB:.1f} GB are there"
        ]
    if report["fits"] is None:
        return ["unknown whether it fits: gpu_memory_mib is not in the facts"]
    free = (report["card_bytes"] - tightest["weights_bytes"]) / BYTES_PER_GB
    lines = [f"fits: the tightest stage leaves {free:.1f} GB of a card beside its weights"]
    if report["kv_tokens"] is None:
        lines.append("KV tokens: unknown, SGLang computes --mem-fraction-static at start; give it in ARGV to see them")
    else:
        lines.append(f"KV tokens: {report['kv_tokens']:,} (the tightest stage decides)")
    return lines


def _sizes(namespace: argparse.Namespace) -> SizeArguments:
    argv = namespace.argv[1:] if namespace.argv[:1] == ["--"] else namespace.argv
    if namespace.source is None:
        return read_argv(argv)
    from ..args.flags import read_flags
    from ..args.parser import ArgvError, parse
    from ..args.source import open_source

    try:
        return SizeArguments.from_values(parse(read_flags(open_source(namespace.source)), argv).values)
    except ArgvError as exc:
        raise InferopsError(str(exc), where="ARGV", do="correct the arguments; inferops check explains them") from exc


def load_json(path: Path, where: str) -> dict[str, Any]:
    """Return the object in a JSON file, or refuse naming the file and what is wrong with it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise InferopsError(
            f"cannot read {path}", where=where, why=exc.strerror or str(exc), do="name a readable JSON file"
        ) from exc
    except ValueError as exc:
        raise InferopsError(f"{path} is not JSON", where=where, why=str(exc), do="name a JSON file") from exc
    if not isinstance(data, dict):
        raise InferopsError(f"{path} holds a {type(data).__name__}, not an object", where=where, do='write {"…": …}')
    return data
