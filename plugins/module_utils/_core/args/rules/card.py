# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kind of card makes of some choices: back ends without kernels for it, a cache format known slow, memory left over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..context import Context
from ..findings import Finding
from ..flags import UNKNOWN

SM120 = (120, 121)
# The file that says for which cards DeepGEMM is used: excludes 12.x (0.5.14 … 0.5.18), or asks for newer kernels (0.5.23).
DEEP_GEMM = "srt/layers/deep_gemm_wrapper/configurer.py"
BACKENDS = ("fp8_gemm_runner_backend", "fp4_gemm_runner_backend", "moe_runner_backend")
# TensorRT-LLM kernels are built for compute capability 10.x; CUTLASS block-scaled FP8 was reported to crash on 12.x.
UNSUITED = {
    "deep_gemm": "DeepGEMM needs tensor memory, which cards of compute capability 12.x do not have",
    "flashinfer_trtllm": "the TensorRT-LLM kernels are built for compute capability 10.x",
    "flashinfer_deepgemm": "DeepGEMM needs tensor memory, which cards of compute capability 12.x do not have",
}
REPORTED = {"cutlass": "on eight RTX PRO 6000 the CUTLASS FP8 kernels were reported to crash where triton worked"}
KIMI = ("KimiK25ForConditionalGeneration",)
# A card that kept 2 % of its memory died in graph capture, one that kept 3 % came up.
LEAST_LEFT = 0.02


def backends(ctx: Context) -> Iterator[Finding]:
    """Refuse or advise against matrix back ends without kernels for compute capability 12.x (R31)."""
    if ctx.facts.sm not in SM120:
        return
    for name in BACKENDS:
        value = ctx.asked(name)
        if name not in ctx.parsed.explicit or value not in {**UNSUITED, **REPORTED}:
            continue
        spelled = ctx.parsed.explicit[name]
        certain = value in UNSUITED
        deep = ctx.line(DEEP_GEMM, "120") if "deep" in str(value) else None
        yield Finding(
            "SGA320",
            "error" if certain and (deep is None or "in (" not in _text(ctx, deep)) else "advice",
            f"{spelled} {value} is not for this card, compute capability {ctx.facts.sm // 10}.{ctx.facts.sm % 10}",
            why=UNSUITED.get(str(value)) or REPORTED[str(value)],
            do=f"write {spelled} triton, or leave the choice to SGLang",
            source=deep or ctx.table.field_source.get(name),
            **ctx.at(spelled),
        )


def _text(ctx: Context, place: str) -> str:
    rel, dummy, line = place.rpartition(":")
    return (ctx.tree.read(rel) or "").splitlines()[int(line) - 1]


def slow_cache(ctx: Context) -> Iterator[Finding]:
    """Advise against an FP8 cache with the INT4 checkpoint of Kimi K2.5 and K2.6 on compute capability 12.x (R71)."""
    value = ctx.effective("kv_cache_dtype")
    config = ctx.model_config or {}
    if ctx.facts.sm not in SM120 or not str(value).startswith("fp8") or not set(config.get("architectures") or ()) & set(KIMI):
        return
    if not _int4(config):
        return
    spelled = ctx.parsed.explicit.get("kv_cache_dtype")
    yield Finding(
        "SGA321",
        "advice",
        f"kv_cache_dtype {value} with the INT4 checkpoint is known to be slow on this card",
        why="one field report, Kimi K2.5 on eight RTX PRO 6000: 16 tokens/s, against 73 to 90 with the cache in bfloat16",
        do="leave the cache at auto, or accept SGA321 with a measurement as the reason",
        source=ctx.table.field_source.get("kv_cache_dtype"),
        **ctx.at(spelled),
    )


def _int4(config: Mapping[str, Any]) -> bool:
    """Whether the expert weights are 4-bit integers, as ``quantization_config`` of the model or of its text part says."""
    parts = [config, config.get("text_config") or {}]
    groups = [group for part in parts for group in ((part.get("quantization_config") or {}).get("config_groups") or {}).values()]
    weights = [group.get("weights") or {} for group in groups if isinstance(group, Mapping)]
    return any(one.get("num_bits") == 4 and one.get("type") == "int" for one in weights)


def memory_share(ctx: Context) -> Iterator[Finding]:
    """Refuse a share of memory that is none: the cache gets what weights leave of it, so the server stops after loading.

    Read in 0.4.6 … 0.5.23: bytes for the cache = free memory − total × (1 − share), and nothing left is an exception.
    """
    share = ctx.effective("mem_fraction_static")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or 0 < share <= 1 or ctx.effective("encoder_only") is True:
        return
    if share > 1 and ctx.asked("max_total_tokens") is not None:
        return  # then the cache is as large as that says
    spelled = ctx.parsed.explicit.get("mem_fraction_static")
    change = ctx.resolution.changed.get("mem_fraction_static", {})
    because = ", ".join(word for word in change.get("because") or () if word.startswith("--") and word != "--model-path")
    if spelled is not None:
        message, do = f"{spelled} {share:g} is no share of a card's memory", "write a number between 0 and 1, such as 0.9"
    else:
        message = f"SGLang works out a mem_fraction_static of {share:g}, which is no share of memory"
        do = "let it reserve less (a smaller chunked prefill, smaller graphs), or give --mem-fraction-static"
    if share <= 0:
        why = "nothing is left for the cache, and the server stops once the weights are loaded"
    else:
        why = "more than there is would be taken for the cache: memory runs out once the weights are loaded"
    yield Finding(
        "SGA323",
        "error",
        message,
        why=why + (f"; what SGLang reserves depends on {because}" if because and spelled is None else ""),
        do=do,
        source=change.get("source") or ctx.table.field_source.get("mem_fraction_static"),
        **ctx.at(spelled),
    )


def memory_left(ctx: Context) -> Iterator[Finding]:
    """Advise where the memory left beside weights and cache is less than graph capture has been seen to need (R76)."""
    fraction, total = ctx.effective("mem_fraction_static"), ctx.facts.gpu_memory_mib
    if (
        fraction is UNKNOWN
        or not isinstance(fraction, float)
        or not 0 < fraction <= 1
        or total is None
        or "mem_fraction_static" not in ctx.parsed.explicit
    ):
        return
    left = 1 - fraction
    if left > LEAST_LEFT + 1e-9:
        return
    spelled = ctx.parsed.explicit["mem_fraction_static"]
    yield Finding(
        "SGA322",
        "advice",
        f"{spelled} {fraction:g} leaves {left * total:,.0f} MiB of {total:,} MiB for graph capture and what comes later",
        why=f"a server came up at 0.97 of its card and died in graph capture at 0.98; 0.97 leaves {0.03 * total:,.0f} MiB here",
        do=f"write {spelled} 0.95 or less, or leave it out: SGLang then reserves what its own rule gives",
        source=ctx.table.field_source.get("mem_fraction_static"),
        **ctx.at(spelled),
    )
