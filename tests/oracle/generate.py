# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make command lines for one release from its own flag table and its own guards. Same seed, same cases.

Usage: python tests/oracle/generate.py --table TABLE.json --package …/sglang --count 120 --seed 1 --out CASES.json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from flag_values import MODELS, Option, illegal, legal, options_of
from shared_rules import Rules, read_rules

HARDWARE = {"8xRTXPRO6000": 5, "8xH200": 2, "8xB200": 3, "8xA100": 1, "1xL4": 1}
# How the story's users place a model; the empty one is a plain start.
LAYOUTS = ([], ["--tp-size", "2"], ["--tp-size", "8"], ["--pp-size", "8"], ["--pp-size", "4", "--tp-size", "2"])
STORY = ("kimi_k25", "kimi_k2")
# What engineers of the story reach for first; names that a release lacks drop out.
STORY_FIELDS = (
    *("disable_cuda_graph", "attention_backend", "pp_async_batch_depth", "chunked_prefill_size", "page_size", "enable_mis"),
    *("enable_mixed_chunk", "disable_overlap_schedule", "disable_radix_cache", "kv_cache_dtype", "mem_fraction_static"),
    *("cuda_graph_max_bs", "cuda_graph_bs", "max_running_requests", "context_length", "enable_torch_compile"),
    *("cuda_graph_backend_decode", "cuda_graph_backend_prefill", "disable_decode_cuda_graph", "disable_prefill_cuda_graph"),
    *("disable_piecewise_cuda_graph", "enable_dynamic_chunking", "pp_max_micro_batch_size", "disaggregation_mode"),
    *("enable_hierarchical_cache", "enable_deterministic_inference", "moe_runner_backend", "schedule_policy"),
    *("enable_breakable_cuda_graph", "speculative_algorithm", "quantization", "moe_a2a_backend", "ep_size", "nnodes"),
    *("decode_attention_backend", "prefill_attention_backend", "enable_dp_attention", "cuda_graph_max_bs_decode"),
)
SHARES = {
    **{"single": 24, "rule_pair": 28, "mixture": 22, "story": 18, "bare": 6},
    **{"illegal": 8, "prefix": 6, "variable": 4, "config_file": 5, "twin": 12, "device": 4},
}
# Switches whose effect the story's engineers ask about: is it the flag, or would it be so anyway?
TWINS = (
    *("disable_cuda_graph", "disable_overlap_schedule", "disable_radix_cache", "enable_mixed_chunk", "enable_mis"),
    *("disable_piecewise_cuda_graph", "disable_prefill_cuda_graph", "disable_decode_cuda_graph", "enable_dp_attention"),
    *("disable_chunked_prefix_cache", "disable_custom_all_reduce", "enable_deterministic_inference"),
)
VARIABLE_VALUES = ("1", "0", "true", "8")
PARTITION = ("SGLANG_PP_LAYER_PARTITION", "8,8,8,8,8,7,7,7")
CONFIG_FILE = "serve.yaml"


# Model, words after it, and what else the case brings: environment, files, a flag to leave out.
Case = tuple[str, list[str]] | tuple[str, list[str], dict[str, Any]]


@dataclass
class Maker:
    """Everything a kind of case draws from."""

    version: str
    options: Mapping[str, Option]
    rules: Rules
    rng: random.Random

    def pick(self, weights: Mapping[Any, float]) -> Any:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def guarded(self) -> Option:
        """A flag that some guard names: those that change things."""
        weights = {name: count**0.5 for name, count in self.rules.fields.items() if name in self.options}
        return self.options[self.pick(weights)]

    def words(self, *chosen: Option) -> list[str]:
        named = dict.fromkeys(chosen)
        draft = self.options.get("speculative_draft_model_path")
        # Without a draft model most algorithms stop at that one check; the others are worth reaching too.
        if draft and any(one.dest == "speculative_algorithm" for one in named) and self.rng.random() < 0.75:
            named[draft] = None
        return [word for one in named for word in legal(one, self.rules.values.get(one.dest, set()), self.rng)]

    def base(self, models: Sequence[str] = MODELS) -> tuple[str, list[str]]:
        model = self.rng.choice(models)
        return model, ["--model-path", f"@models/{model}", *self.layout()]

    def layout(self) -> list[str]:
        return [] if self.rng.random() < 0.35 else list(self.rng.choice(LAYOUTS))


def _single(make: Maker) -> Case:
    model, argv = make.base()
    one = make.guarded() if make.rng.random() < 0.6 else make.options[make.rng.choice(list(make.options))]
    return model, argv + make.words(one)


def _rule_pair(make: Maker) -> Case:
    model, argv = make.base()
    pairs = {pair: count**0.5 for pair, count in make.rules.pairs.items() if all(name in make.options for name in pair)}
    return model, argv + make.words(*(make.options[name] for name in make.pick(pairs)))


def _mixture(make: Maker) -> Case:
    model, argv = make.base()
    return model, argv + make.words(*(make.guarded() for _draw in range(make.rng.randint(2, 5))))


def _story(make: Maker) -> Case:
    model = make.rng.choice(STORY)
    argv = ["--model-path", f"@models/{model}", "--pp-size", "8", "--trust-remote-code"]
    names = [name for name in STORY_FIELDS if name in make.options]
    chosen = make.rng.sample(names, min(len(names), make.rng.randint(0, 3)))
    return model, argv + make.words(*(make.options[name] for name in chosen))


def _illegal(make: Maker) -> Case:
    model, argv = make.base()
    return model, argv + illegal(make.options[make.rng.choice(list(make.options))], make.rng)


def _prefix(make: Maker) -> Case:
    """A name cut short: right, ambiguous or unknown is for argparse to say."""
    model, argv = make.base()
    words = make.words(make.guarded())
    if words and len(words[0]) > 6:
        words[0] = words[0][: make.rng.randint(5, len(words[0]) - 1)]
    return model, argv + words


def _bare(make: Maker) -> Case:
    return make.base()


def _variable(make: Maker) -> Case:
    """An environment variable that the argument code reads."""
    model, argv = make.base()
    if make.rng.random() < 0.2 or not make.rules.environment:
        return "kimi_k25", ["--model-path", "@models/kimi_k25", "--pp-size", "8"], {"env": dict([PARTITION])}
    env = {make.pick(make.rules.environment): make.rng.choice(VARIABLE_VALUES)}
    return model, argv + make.words(make.guarded()), {"env": env}


def _config_file(make: Maker) -> Case:
    """Some of the flags in a file; now and then the command line says otherwise."""
    model, argv = make.base()
    chosen = {one.dest: one for one in (make.guarded() for _draw in range(make.rng.randint(1, 3)))}
    entries = []
    for one in chosen.values():
        first, *values = make.words(one)
        name, equals, value = first.removeprefix("--").partition("=")
        values = [value] if equals else values
        entries.append(f"{name}: {_yaml(values, several=one.nargs in ('+', '*'))}\n")
    again = make.words(make.rng.choice(list(chosen.values()))) if make.rng.random() < 0.4 else []
    return model, [*argv, "--config", CONFIG_FILE, *again], {"files": {CONFIG_FILE: "".join(entries)}}


def _yaml(values: list[str], *, several: bool) -> str:
    if not values:
        return "true"
    plain = [value if value.isdigit() else json.dumps(value) for value in values]
    return f"[{', '.join(plain)}]" if several else plain[0]


def _twin(make: Maker) -> Case:
    """A command line with a switch, to be executed once more without it."""
    names = [name for name in TWINS if name in make.options]
    one = make.options[make.rng.choice(names)]
    model, argv = (_story(make) if make.rng.random() < 0.6 else _rule_pair(make))[:2]
    argv = [word for word in argv if word not in one.strings]
    return model, [*argv, one.strings[0]], {"without": one.strings[0]}


def _device(make: Maker) -> Case:
    """A host with GPUs that is told not to use them."""
    model, argv = make.base()
    return model, [*argv, "--device", "cpu", *make.words(*(make.guarded() for _draw in range(make.rng.randint(0, 2))))]


KINDS: dict[str, Callable[[Maker], Case]] = {
    "single": _single,
    "rule_pair": _rule_pair,
    "mixture": _mixture,
    "story": _story,
    "illegal": _illegal,
    "prefix": _prefix,
    "bare": _bare,
    "variable": _variable,
    "config_file": _config_file,
    "twin": _twin,
    "device": _device,
}


def generate(
    version: str, table: Mapping[str, Any], package: Path, *, seed: int, count: int, hardware: Collection[str] = HARDWARE
) -> list[dict[str, Any]]:
    """Return ``count`` cases without outcomes; no command line twice on the same hardware."""
    weights = {name: weight for name, weight in HARDWARE.items() if name in hardware}
    options = options_of(table)
    # One stream per release: adding a release to a run changes no other's cases.
    make = Maker(version, options, read_rules(package, options), random.Random(f"{seed} {version}"))
    shares = dict(SHARES)
    if not any("--config" in action["flags"] for action in table["actions"]):
        del shares["config_file"]
    cases: dict[str, dict[str, Any]] = {}
    for _attempt in range(count * 20):
        if len(cases) >= count:
            break
        kind = make.pick(shares)
        model, argv, *more = KINDS[kind](make)
        host = make.pick(weights)
        name = f"{kind}-{seed}-{len(cases)}@{version}@{model}@{host}"
        case = {"id": name, "sglang_version": version, "argv": argv, "model_config": model, "hardware": host}
        for extra in more:
            case.update(extra)
        _add(cases, case)
    return list(cases.values())


def each_flag(
    version: str, table: Mapping[str, Any], package: Path, *, seed: int, hardware: Collection[str] = HARDWARE
) -> list[dict[str, Any]]:
    """Return one case for every flag of the release, alone on a model and a layout that are drawn."""
    options = options_of(table)
    make = Maker(version, options, read_rules(package, options), random.Random(f"{seed} {version} each"))
    cases: dict[str, dict[str, Any]] = {}
    for index, one in enumerate(options.values()):
        model, argv = make.base()
        host = make.pick({name: weight for name, weight in HARDWARE.items() if name in hardware})
        name = f"each-{seed}-{index}@{version}@{model}@{host}"
        words = [*argv, *make.words(one)]
        _add(cases, {"id": name, "sglang_version": version, "argv": words, "model_config": model, "hardware": host})
    return list(cases.values())


def _add(cases: dict[str, dict[str, Any]], case: dict[str, Any]) -> None:
    """Keep a case, and for a twin its other half; none twice."""
    left_out = case.pop("without", None)
    for one in [case] if left_out is None else [case, _without(case, left_out)]:
        cases.setdefault(json.dumps([one["hardware"], one["argv"], one.get("env"), one.get("files")]), one)
    if left_out is not None:
        case["twin"] = cases[json.dumps([case["hardware"], _without(case, left_out)["argv"], None, None])]["id"]


def _without(case: dict[str, Any], string: str) -> dict[str, Any]:
    return {**case, "id": "without-" + case["id"], "argv": [word for word in case["argv"] if word != string]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="the release's own parser as JSON")
    parser.add_argument("--package", type=Path, required=True, help="the unpacked sglang folder")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", nargs="+", choices=HARDWARE, default=list(HARDWARE))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    table = json.loads(options.table.read_text(encoding="utf-8"))
    cases = generate(table["version"], table, options.package, seed=options.seed, count=options.count, hardware=options.hardware)
    options.out.write_text(json.dumps(cases, indent=0), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
