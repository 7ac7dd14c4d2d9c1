# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""inferops memory: weights, cache tokens and bounds of a model on given cards, before anything is started."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .arguments import SizeArguments
from .asked import Asked, asked_sizes
from .memory import MemoryPlan, plan_memory
from .memory_text import as_text, gigabytes
from .model import ModelShape
from .roofline import bound
from .stages import PARTITION_ENV, stage_layers

FINE, DOES_NOT_FIT, UNKNOWN = 0, 1, 3
CONCURRENCIES = (1, 8, 16, 32)
NOT_COUNTED = (
    "activations",
    "CUDA graphs",
    "NCCL and all-to-all buffers",
    "the CUDA context and what else is in use before loading",
    "fragmentation",
    "norms",
    "draft model",
    "caches of images",
)


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    memory = commands.add_parser("memory", help="per-stage weights, KV tokens, headroom and bounds")
    memory.add_argument("--model", required=True, type=Path, metavar="CONFIG.json")
    memory.add_argument("--facts", type=Path, metavar="FACTS.json")
    memory.add_argument("--source", type=Path, metavar="PATH|WHEEL", help="resolve ARGV as this release does")
    memory.add_argument("--env", action="append", default=[], metavar="K=V", help=f"such as {PARTITION_ENV}=8,8,8,8,8,7,7,7")
    memory.add_argument("--format", choices=("text", "json"), default="text")
    memory.add_argument("argv", nargs="*", metavar="-- ARGV", help="launch arguments after --")
    memory.set_defaults(run=run_memory)


def run_memory(namespace: argparse.Namespace) -> int:
    """Print the plan; 0 fits, 1 refused or does not fit, 3 cannot be told from what was given."""
    # Imported here: facts belong to the args area, which need not be read for the other uses of this one.
    from ..args.facts import Facts

    config = load_json(_config_file(namespace.model), "--model")
    shape = ModelShape.from_config(config)
    raw_facts = load_json(namespace.facts, "--facts") if namespace.facts else {}
    facts, env = Facts.from_dict(raw_facts), _environment(namespace.env)
    argv = namespace.argv[1:] if namespace.argv[:1] == ["--"] else namespace.argv
    asked = asked_sizes(argv, namespace.source, raw_facts, config, env)
    sizes = asked.sizes
    if shape.num_layers is not None:
        try:
            stage_layers(shape.num_layers, sizes.pp_size, env.get(PARTITION_ENV))
        except InferopsError as refusal:  # SGLang would stop with a ValueError too: an answer, not a failure to run
            print(json.dumps({"fits": False, "refused": str(refusal)}) if namespace.format == "json" else refusal)
            return DOES_NOT_FIT
    plan = plan_memory(
        shape,
        tp_size=sizes.tp_size,
        pp_size=sizes.pp_size,
        partition=env.get(PARTITION_ENV),
        gpu_memory_mib=facts.gpu_memory_mib,
        mem_fraction_static=sizes.mem_fraction_static,
        kv_cache_dtype=sizes.kv_cache_dtype,
        attention_tp=sizes.attention_tp,
        page_tokens=sizes.page_size or 1,
        max_total_tokens=sizes.max_total_tokens,
    )
    report = as_dict(plan, shape, asked, _bounds(shape, sizes, facts.gpu_bandwidth_gb_s))
    print(json.dumps(report, indent=1) if namespace.format == "json" else as_text(report))
    if plan.fits is None:
        return UNKNOWN
    return FINE if plan.fits else DOES_NOT_FIT


def _bounds(shape: ModelShape, sizes: SizeArguments, bandwidth_gb_s: float | None) -> list[dict[str, Any]]:
    bounds = []
    for concurrency in CONCURRENCIES:
        found = bound(
            shape,
            tp_size=sizes.tp_size,
            pp_size=sizes.pp_size,
            concurrency=concurrency,
            bandwidth_gb_s=bandwidth_gb_s,
            kv_cache_dtype=sizes.kv_cache_dtype,
        )
        bounds.append(
            {"concurrency": concurrency, "bound_tokens_per_s": None if found is None else round(found.best.tokens_per_s, 1)}
        )
    return bounds


def as_dict(plan: MemoryPlan, shape: ModelShape, asked: Asked, bounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan as JSON values; what cannot be told is null."""
    sizes = asked.sizes
    return {
        "architecture": shape.architecture,
        "weights_bytes": None if shape.weights_bytes is None else round(shape.weights_bytes),
        "vision_bytes_per_card": round(shape.vision_held(sizes.tp_size)),
        "uncounted": list(shape.uncounted),
        "not_counted": [*shape.uncounted, *NOT_COUNTED],
        "pp_size": sizes.pp_size,
        "tp_size": sizes.tp_size,
        "mem_fraction_static": sizes.mem_fraction_static,
        "mem_fraction_static_source": "asked for" if asked.fraction_given else asked.own_source,
        "own_mem_fraction_static": asked.own_fraction,
        "kv_cache_dtype": sizes.kv_cache_dtype,
        "card_bytes": None if plan.card_bytes is None else round(plan.card_bytes),
        "static_bytes": None if plan.tightest.static_bytes is None else round(plan.tightest.static_bytes),
        "fits": plan.fits,
        "kv_tokens": plan.kv_tokens,
        "tightest_stage": plan.tightest.pp_rank,
        "warnings": list(memory_warnings(plan, asked)),
        "better_split": None
        if plan.better is None
        else {"layers": list(plan.better.layers), "kv_tokens": plan.better.kv_tokens, "env": PARTITION_ENV},
        "undecided": list(asked.undecided),
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


def memory_warnings(plan: MemoryPlan, asked: Asked) -> Iterator[str]:
    """Yield what fits and is still to be thought about: a better split, and a margin below SGLang's own (R76)."""
    if plan.better is not None:
        layers = ",".join(str(count) for count in plan.better.layers)
        more = plan.better.kv_tokens - (plan.kv_tokens or 0)
        yield (
            f"{PARTITION_ENV}={layers} caches {plan.better.kv_tokens:,} tokens, {more:,} more, with no stage longer than now; "
            "by arithmetic, not measured"
        )
    fraction, own = asked.sizes.mem_fraction_static, asked.own_fraction
    if plan.card_bytes and fraction is not None and own is not None and fraction > own:
        left, wanted = plan.card_bytes * (1 - fraction), plan.card_bytes * (1 - own)
        source = f" [{asked.own_source}]" if asked.own_source else ""
        yield (
            f"mem_fraction_static {fraction:g} leaves {gigabytes(left)} of a card for activations, graphs and buffers; SGLang by "
            f"itself would leave {gigabytes(wanted)} ({own:.3f}){source}, so a start can pass and graph capture or a long prompt "
            "run out of memory"
        )


def _config_file(path: Path) -> Path:
    return path / "config.json" if path.is_dir() else path


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InferopsError(f"--env {pair} has no '='", where="--env", do="write NAME=VALUE")
    return dict(pair.split("=", 1) for pair in pairs)


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
