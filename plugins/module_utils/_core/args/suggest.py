# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What somebody probably meant by a flag the release does not have. Only spellings the release has are suggested."""

from __future__ import annotations

import difflib

from .flags import FlagTable

# Old spelling: successors in order of preference; executed on the releases 0.4.3 … 0.5.23. `spelling=value` names the value too.
SUCCESSORS: dict[str, tuple[str, ...]] = {
    "--max-micro-batch-size": ("--pp-max-micro-batch-size",),
    "--multi-item-scoring-delimiter": ("--enable-mis",),
    "--cuda-graph-max-bs": ("--cuda-graph-max-bs-decode",),
    "--cuda-graph-bs": ("--cuda-graph-bs-decode",),
    "--disable-piecewise-cuda-graph": ("--cuda-graph-backend-prefill=disabled", "--disable-prefill-cuda-graph"),
    "--enable-breakable-cuda-graph": ("--cuda-graph-backend-prefill=breakable",),
    "--enable-dp-attention": ("--attn-dp-size",),
    "--enable-ep-moe": ("--ep-size",),
    "--enable-deepep-moe": ("--moe-a2a-backend=deepep",),
    "--enable-flashinfer-mla": ("--attention-backend=flashinfer",),
    "--enable-flashmla": ("--attention-backend=flashmla",),
    "--oltp-traces-endpoint": ("--otlp-traces-endpoint",),
    "--nsa-prefill-backend": ("--dsa-prefill-backend",),
    "--nsa-decode-backend": ("--dsa-decode-backend",),
    "--enable-nsa-prefill-context-parallel": ("--enable-prefill-cp",),
    "--enable-dsa-prefill-context-parallel": ("--enable-prefill-cp",),
    "--enable-prefill-context-parallel": ("--enable-prefill-cp",),
    "--impl": ("--model-impl",),
    "--file-storage-pth": ("--file-storage-path",),
    "--return-hidden-states": ("--enable-return-hidden-states",),
    "--kt-amx-method": ("--kt-method",),
    "--mamba-scheduler-strategy": ("--mamba-radix-cache-strategy",),
    "--stream-output": ("--incremental-streaming-output",),
    "--hybrid-kvcache-ratio": ("--swa-full-tokens-ratio",),
    "--speculative-dflash-draft-window-size": ("--speculative-draft-window-size",),
    "--fp8-gemm-runner-backend": ("--fp8-gemm-backend",),
    "--fp4-gemm-runner-backend": ("--fp4-gemm-backend",),
    "--fp8-gemm-backend": ("--fp8-gemm-runner-backend",),
    "--fp4-gemm-backend": ("--fp4-gemm-runner-backend",),
}
# Ends that say "the number itself": of several flags a short form could mean, the one that is only longer by this is likeliest.
_PLAIN_ENDS = ("-size", "-path", "-length", "-name", "-backend")


def suggest(word: str, table: FlagTable) -> str | None:
    """Return the flag meant by an unknown word, None where nothing is near.

    Looks at successors first, then the same letters with other dashes, then similar spelling.
    """
    name = word.partition("=")[0]
    strings = [string for flag in table.flags for string in flag.strings]
    plain = "--" + name.lstrip("-").replace("_", "-").lower()
    for candidate in (*SUCCESSORS.get(plain, ()), plain):
        if candidate.partition("=")[0] in strings:
            return candidate
    extended = [string for string in strings if string.startswith(plain)]
    if len(extended) == 1:
        return extended[0]
    near = difflib.get_close_matches(plain, strings, n=1, cutoff=0.82)
    return near[0] if near else None


def likeliest(short: str, candidates: list[str]) -> str | None:
    """Return which of the flags an ambiguous short form most likely means, None where none stands out.

    >>> likeliest("--pp", ["--pp-size", "--pp-max-micro-batch-size", "--pp-async-batch-depth"])
    '--pp-size'
    """
    for end in _PLAIN_ENDS:
        if short + end in candidates:
            return short + end
    successors = [new for new in SUCCESSORS.get(short, ()) if new.partition("=")[0] in candidates]
    return successors[0] if successors else None
