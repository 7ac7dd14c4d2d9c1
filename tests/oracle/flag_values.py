# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Legal and illegal values for a flag of a release, from its own table; a few need values that the table cannot tell."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

MODELS = (
    *("llama", "deepseek_v3", "deepseek_v32", "kimi_k25", "kimi_k2", "qwen3", "qwen3_moe", "qwen3_next"),
    *("qwen2_5_vl", "gpt_oss", "gemma2"),
)
DRAFTS = ("@models/llama_eagle3", "@models/llama", "@models/qwen3")
# Values that mean something for flags whose table entry says only "text" or "number".
_VALUES: Mapping[str, tuple[str, ...]] = {
    "speculative_algorithm": ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
    "speculative_draft_model_path": DRAFTS,
    "mem_fraction_static": ("0.5", "0.8", "0.9", "0.98"),
    "context_length": ("4096", "131072", "999999999"),
    "chunked_prefill_size": ("-1", "0", "1000", "2048", "16384"),
    "max_prefill_tokens": ("4096", "16384"),
    "page_size": ("1", "16", "32", "64", "128"),
    "cuda_graph_max_bs": ("1", "16", "160"),
    "cuda_graph_max_bs_decode": ("1", "16", "160"),
    "cuda_graph_max_bs_prefill": ("64", "2048", "8192"),
    "pp_async_batch_depth": ("-1", "0", "2", "8"),
    "pp_max_micro_batch_size": ("0", "1", "4"),
    "max_running_requests": ("0", "1", "16", "256"),
    "max_total_tokens": ("1024", "65536"),
    "schedule_conservativeness": ("-1", "0.3", "1.3"),
    "speculative_num_steps": ("1", "3", "5"),
    "speculative_eagle_topk": ("1", "4", "8"),
    "speculative_num_draft_tokens": ("2", "4", "16"),
    "lora_target_modules": ("all", "q_proj k_proj", "qkv_proj o_proj"),
    "max_lora_rank": ("8", "64"),
    "dist_init_addr": ("127.0.0.1:5000", "node0:20000"),
    "dtype": ("auto", "half", "bfloat16", "float32"),
    "preferred_sampling_params": ('{"temperature": 0.5}',),
    "json_model_override_args": ('{"num_hidden_layers": 4}', "{}"),
    "model_loader_extra_config": ('{"enable_multithread_load": true}', "{}"),
    "cuda_graph_config": (
        '{"decode": {"backend": "disabled"}}',
        '{"prefill": {"backend": "disabled"}, "decode": {"max_bs": 16}}',
        '{"decode": {"backend": "full"}}',
    ),
    "load_format": ("auto", "dummy", "safetensors"),
    # On a host with GPUs; what is read of the memory is then still the card's.
    "device": ("cuda", "cpu"),
}
# Left out: needs files of the host, opens sockets, says the same on every host, or ends the process.
_LEFT_OUT = frozenset(
    {"help", "model_path", "config", "version", "tokenizer_path", "download_dir", "port", "nccl_port", "host", "random_seed"}
)
_LEFT_OUT_PARTS = ("ssl_", "_path", "_file", "_dir", "quantization_param")
_INTEGERS = ("-1", "0", "1", "2", "3", "4", "8", "64")
_FLOATS = ("0.0", "0.1", "0.5", "1.0", "2.5", "-0.5")
_TEXT = ("some-text", "1", "auto")
_SWITCHES = frozenset(
    {"_StoreTrueAction", "_StoreFalseAction", "_StoreConstAction", "DeprecatedStoreTrueAction", "DeprecatedStoreConstAction"}
    | {"DeprecatedAction", "BooleanOptionalAction"}
)


@dataclass(frozen=True)
class Option:
    """One action of the release's parser."""

    dest: str
    strings: tuple[str, ...]
    action: str
    nargs: str | int | None
    choices: tuple[str, ...]
    type: str | None

    @property
    def switch(self) -> bool:
        return self.action in _SWITCHES or self.nargs == 0


def options_of(table: Mapping[str, Any]) -> dict[str, Option]:
    """Return the flags worth asking about, by dest; a later action of a dest (deprecated twin) under its own string."""
    found: dict[str, Option] = {}
    for raw in table["actions"]:
        dest = raw["dest"]
        if not raw["flags"] or (dest not in _VALUES and _left_out(dest)):
            continue
        one = Option(dest, tuple(raw["flags"]), raw["action"], raw["nargs"], tuple(raw["choices"] or ()), raw["type"])
        found[dest if dest not in found else one.strings[0]] = one
    return found


def _left_out(dest: str) -> bool:
    return dest in _LEFT_OUT or any(part in dest for part in _LEFT_OUT_PARTS)


def legal(option: Option, compared: Collection[object], rng: random.Random) -> list[str]:
    """Return the words of one use of the flag. ``compared``: values that the release's guards look for."""
    string = rng.choice(option.strings)
    if option.switch:
        return [string]
    if option.nargs == "?" and rng.random() < 0.4:
        return [string]
    value = rng.choice(_candidates(option, compared))
    if option.nargs in ("+", "*"):
        return [string, *value.split()]
    return [string, value] if rng.random() < 0.9 or value.startswith("-") else [f"{string}={value}"]


def _candidates(option: Option, compared: Collection[object]) -> list[str]:
    if option.choices:
        wanted = [str(one) for one in sorted(map(str, compared)) if str(one) in option.choices]
        # Twice those that a guard asks for; a backend nobody asks for is drawn too.
        return [*option.choices, *wanted]
    if option.dest in _VALUES:
        return list(_VALUES[option.dest])
    if option.type in ("int", "human_readable_int"):
        numbers = [str(one) for one in sorted(map(str, compared)) if str(one).lstrip("-").isdigit()]
        return [*_INTEGERS, *numbers] if option.nargs not in ("+", "*") else ["1 2 4 8", "16", "1 3 512"]
    if option.type == "float":
        return list(_FLOATS) if option.nargs not in ("+", "*") else ["0.1 1 10", "0.5"]
    if option.type in ("loads", "json_list_type"):
        return ["{}", '{"a": 1}', "[]"]
    return [*_TEXT, *sorted(str(one) for one in compared if isinstance(one, str) and one)]


def illegal(option: Option, rng: random.Random) -> list[str]:
    """Return words that the parser should refuse: a wrong value, a missing one, one too many, a name that is none."""
    string = option.strings[0]
    wrong = [[string.replace("-", "_").replace("__", "--", 1), "1"], [f"{string}-x"], [string[1:]]]
    if option.switch:
        wrong.append([string, "surplus"])
        wrong.append([f"{string}=1"])
    else:
        wrong.append([string])
        if option.choices:
            wrong += [[string, "no-such-choice"], [string, option.choices[0].upper() + "x"]]
        elif option.type in ("int", "float"):
            wrong += [[string, "two"], [string, "1.5.2"]]
        elif option.type:
            wrong.append([string, "{not json"])
    return rng.choice(wrong)
