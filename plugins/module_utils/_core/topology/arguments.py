# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the few launch arguments that decide sizes. With a flag table use the argument parser; this is for without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError

# Spellings by field, the same in every release from 0.5.6.post2 to 0.5.23.
SPELLINGS = {
    "pp_size": ("--pp-size", "--pipeline-parallel-size"),
    "tp_size": ("--tp-size", "--tensor-parallel-size"),
    "mem_fraction_static": ("--mem-fraction-static",),
    "kv_cache_dtype": ("--kv-cache-dtype",),
    "max_total_tokens": ("--max-total-tokens",),
    "page_size": ("--page-size",),
}
# Not read here, but an abbreviation must not be taken for one of the above while it could also mean one of these.
NEIGHBOURS = ("--pp-max-micro-batch-size", "--pp-async-batch-depth", "--kv-events-config", "--tokenizer-path")


@dataclass(frozen=True)
class SizeArguments:
    """What the command line says about sizes; SGLang's defaults where it says nothing, None where SGLang computes it."""

    pp_size: int = 1
    tp_size: int = 1
    mem_fraction_static: float | None = None
    kv_cache_dtype: str = "auto"
    max_total_tokens: int | None = None
    page_size: int | None = None
    attention_tp: int | None = None
    """Ranks that share one copy of the attention; None = tp_size. Fewer under DP attention, which only a resolved argv tells."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> SizeArguments:
        """Take parsed values by field name; other fields are ignored, text is converted."""
        kinds = {
            "pp_size": int,
            "tp_size": int,
            "mem_fraction_static": float,
            "kv_cache_dtype": str,
            "max_total_tokens": int,
            "page_size": int,
        }
        known: dict[str, Any] = {}
        for field, kind in kinds.items():
            value = values.get(field)
            if value is None:
                continue
            try:
                known[field] = kind(value)
            except (TypeError, ValueError) as exc:
                raise InferopsError(f"{field} is {value!r}", where="ARGV", do=f"give a value of type {kind.__name__}") from exc
        sizes = cls(**known, attention_tp=_attention_tp(known.get("tp_size", 1), values))
        for field in ("pp_size", "tp_size", "max_total_tokens", "page_size"):
            value = getattr(sizes, field)
            if value is not None and value < 1:
                raise InferopsError(f"{field} is {getattr(sizes, field)}", where="ARGV", do="give a whole number of 1 or more")
        if sizes.mem_fraction_static is not None and not 0 < sizes.mem_fraction_static < 1:
            raise InferopsError(
                f"mem_fraction_static is {sizes.mem_fraction_static}", where="ARGV", do="give a ratio between 0 and 1"
            )
        return sizes


def _attention_tp(tp_size: int, values: Mapping[str, Any]) -> int | None:
    """Return tp_size over the replicas of DP attention (srt/layers/dp_attention.py, 0.5.10 … 0.5.23), None without."""
    replicas = values.get("attn_dp_size")
    if not isinstance(replicas, int) or replicas < 2:
        replicas = values.get("dp_size") if values.get("enable_dp_attention") is True else None
    if not isinstance(replicas, int) or replicas < 2 or tp_size % replicas:
        return None
    return tp_size // replicas


def read_argv(argv: Sequence[str]) -> SizeArguments:
    """Read an argv without knowing the release: exact names and abbreviations that can mean one thing only.

    >>> sizes = read_argv(["--model-path", "/m", "--tp", "1", "--pp-size=8", "--mem-frac", "0.85"])
    >>> sizes.pp_size, sizes.tp_size, sizes.mem_fraction_static
    (8, 1, 0.85)
    """
    values: dict[str, str] = {}
    for position, word in enumerate(argv):
        name, equals, inline = word.partition("=")
        field = _field(name)
        if field is None:
            continue
        if equals:
            values[field] = inline
        elif position + 1 < len(argv) and not argv[position + 1].startswith("--"):
            values[field] = argv[position + 1]
        else:
            raise InferopsError(f"{name} has no value", where=f"ARGV word {position + 1}", do=f"write {name}=VALUE")
    return SizeArguments.from_values(values)


def _field(name: str) -> str | None:
    if not name.startswith("--") or len(name) < 4:
        return None
    exact = next((field for field, spellings in SPELLINGS.items() if name in spellings), None)
    if exact is not None or name in NEIGHBOURS:
        return exact
    spelled = [(spelling, field) for field, spellings in SPELLINGS.items() for spelling in spellings if spelling.startswith(name)]
    others = [spelling for spelling in NEIGHBOURS if spelling.startswith(name)]
    fields = {field for _spelling, field in spelled}
    if not fields:
        return None
    if len(fields) > 1 or others:
        meant = ", ".join([*(spelling for spelling, _field in spelled), *others])
        raise InferopsError(
            f"ambiguous option: {name} could match {meant}",
            where="ARGV",
            why="SGLang refuses an abbreviation that fits several flags",
            do=f"write {spelled[0][0]}",
        )
    return fields.pop()
