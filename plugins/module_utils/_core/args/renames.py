# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What takes the place of a flag that a release no longer has, where neither release compared says so itself.

What the last release that had a flag said of it is in history.RENAMED; RENAMES holds what none said.

Only where the meaning is the same; a flag whose successor means something else is in HINTS, for a person to decide.
Origins are lines of the last release that has the flag or of the first that has the successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .history import RENAMED

WHOLE = "{value}"


@dataclass(frozen=True)
class Rename:
    """One successor. ``value``: ``{value}`` hands the old words on, None takes none, other text is written as it stands.

    ``values`` translates what was given. ``new`` None: the flag is left out, since what it asked for is how the release works.
    """

    new: str | None
    origin: str
    value: str | None = WHOLE
    values: Mapping[str, str] | None = None

    @property
    def spelled(self) -> str | None:
        """Return the successor, ``flag=value`` where it names the value itself."""
        return self.new if self.value in (WHOLE, None) else f"{self.new}={self.value}"


_CP_MODES = {"in-seq-split": "zigzag", "round-robin-split": "interleave"}
_CP = "srt/arg_groups/parallel_hook.py:565 (0.5.19)"
_MOE_RUNNER = "srt/server_args.py:318 (0.5.1)"

RENAMES: dict[str, tuple[Rename, ...]] = {
    "--impl": (Rename("--model-impl", "srt/server_args.py (0.4.9.post3): same choices, same default"),),
    "--max-micro-batch-size": (Rename("--pp-max-micro-batch-size", "srt/server_args.py:1641 (0.5.3.post1)"),),
    "--oltp-traces-endpoint": (Rename("--otlp-traces-endpoint", "srt/server_args.py (0.5.4.post2): a typing error put right"),),
    "--enable-flashinfer-moe": (
        Rename("--enable-flashinfer-cutlass-moe", "srt/server_args.py:440 (0.4.9.post5)", None),
        Rename("--moe-runner-backend", _MOE_RUNNER, "flashinfer_cutlass"),
    ),
    "--enable-flashinfer-cutlass-moe": (Rename("--moe-runner-backend", _MOE_RUNNER, "flashinfer_cutlass"),),
    "--enable-flashinfer-cutedsl-moe": (Rename("--moe-runner-backend", _MOE_RUNNER, "flashinfer_cutedsl"),),
    "--enable-flashinfer-trtllm-moe": (Rename("--moe-runner-backend", _MOE_RUNNER, "flashinfer_trtllm"),),
    "--enable-flashinfer-mxfp4-moe": (Rename("--moe-runner-backend", _MOE_RUNNER, "flashinfer_mxfp4"),),
    "--enable-triton-kernel-moe": (Rename("--moe-runner-backend", _MOE_RUNNER, "triton_kernel"),),
    "--enable-deepep-moe": (Rename("--moe-a2a-backend", "srt/server_args.py:316 (0.5.1)", "deepep"),),
    "--enable-flashinfer-mla": (Rename("--attention-backend", "its own help text (0.4.6)", "flashinfer"),),
    "--enable-flashmla": (Rename("--attention-backend", "its own help text (0.4.6)", "flashmla"),),
    "--nsa-prefill": (Rename("--nsa-prefill-backend", "srt/server_args.py:2398 (0.5.4)"),),
    "--nsa-decode": (Rename("--nsa-decode-backend", "srt/server_args.py:2404 (0.5.4)"),),
    "--kt-amx-weight-path": (Rename("--kt-weight-path", "srt/server_args.py:3027 (0.5.5.post1)"),),
    "--kt-amx-method": (Rename("--kt-method", "srt/server_args.py:3032 (0.5.5.post1)"),),
    "--enable-flashinfer-autotune": (Rename(None, "srt/server_args.py:3357 (0.5.7): on, with --disable-… against it"),),
    "--nsa-prefill-cp-mode": (
        Rename("--dsa-prefill-cp-mode", "deprecated alias (0.5.13)"),
        Rename("--cp-strategy", _CP, values=_CP_MODES),
    ),
    "--dsa-prefill-cp-mode": (Rename("--cp-strategy", _CP, values=_CP_MODES),),
    "--prefill-cp-mode": (Rename("--cp-strategy", _CP, values=_CP_MODES),),
    "--elastic-ep-rejoin": (Rename("--elastic-ep-join-mode", "srt/server_args.py:5931 (0.5.16)", "recover"),),
    "--keep-mm-feature-on-device": (Rename("--mm-feature-transport", "srt/server_args.py:6590 (0.5.16)", "cuda_ipc"),),
    "--monokernel-backend": (Rename("--enable-amd-monokernel", "deprecated alias (0.5.22)", None),),
}


def known_renames(name: str) -> tuple[Rename, ...]:
    """Return the successors of a flag in order of preference.

    >>> [rename.new for rename in known_renames("--cuda-graph-max-bs")]
    ['--cuda-graph-max-bs-decode']
    """
    said = RENAMED.get(name)
    if name in RENAMES or said is None:
        return RENAMES.get(name, ())
    new, equals, value = said.partition("=")
    return (Rename(new, "the last release that has it names this one", value if equals else WHOLE),)


HINTS: dict[str, str] = {
    "--multi-item-scoring-delimiter": "--enable-mis turns multi-item scoring on; its delimiter is no longer an argument",
    "--enable-ep-moe": "write --ep-size with the value of --tp-size",
    "--enable-nan-detection": "set SGLANG_SPEC_NAN_DETECTION=1 and SGLANG_SPEC_OOB_DETECTION=1 in the environment",
    "--enable-piecewise-cuda-graph": "leave it out: prefill graphs are on unless the release says why not (inferops explain)",
    "--enable-expert-distribution-metrics": "write --expert-balancedness-report-mode with off, server_log, prometheus or both",
    "--hybrid-kvcache-ratio": "--swa-full-tokens-ratio divides the cache, by another formula",
    "--optimistic-prefill-retries": "--optimistic-prefill-attempts counts passes, retries + 1",
    "--cuda-graph-tc-compiler": "leave it out together with the backend tc_piecewise it belonged to",
    "--enforce-piecewise-cuda-graph": "the backend tc_piecewise is gone; --cuda-graph-backend-prefill breakable took its place",
    "--speculative-ngram-branch-length": "--speculative-ngram-max-trie-depth bounds the search now",
    "--torchao-config": "quantize the checkpoint, or choose a --quantization the release has",
}

# Fields whose resolved value is the same thing under another name (0.5.14: CudaGraphConfig); compared as old → new.
SAME_FIELD: dict[str, str] = {
    "cuda_graph_max_bs": "cuda_graph_config.decode.max_bs",
    "cuda_graph_bs": "cuda_graph_config.decode.bs",
    "piecewise_cuda_graph_max_tokens": "cuda_graph_config.prefill.max_bs",
    "piecewise_cuda_graph_tokens": "cuda_graph_config.prefill.bs",
    "piecewise_cuda_graph_compiler": "cuda_graph_config.prefill.tc_compiler",
    "max_micro_batch_size": "pp_max_micro_batch_size",
    "impl": "model_impl",
    "oltp_traces_endpoint": "otlp_traces_endpoint",
    "stream_output": "incremental_streaming_output",
    "mamba_scheduler_strategy": "mamba_radix_cache_strategy",
    "nsa_prefill_backend": "dsa_prefill_backend",
    "nsa_decode_backend": "dsa_decode_backend",
    "kt_amx_method": "kt_method",
    "kt_amx_weight_path": "kt_weight_path",
}
# Switches that became one value of another field: (old field, its value) → (new field, its value).
SAME_STATE: dict[tuple[str, bool], tuple[str, str]] = {
    ("disable_cuda_graph", True): ("cuda_graph_config.decode.backend", "disabled"),
    ("disable_cuda_graph", False): ("cuda_graph_config.decode.backend", "full"),
    ("disable_piecewise_cuda_graph", True): ("cuda_graph_config.prefill.backend", "disabled"),
}
