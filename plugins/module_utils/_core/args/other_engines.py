# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Launch flags of other engines, and the SGLang field that does the same job where there is one.

From the engines' own command-line references (vLLM `vllm serve`, TensorRT-LLM `trtllm-serve`, Text Generation Inference
`text-generation-launcher`, llama.cpp `llama-server`) of 2026. A field is offered only in releases that have it; `note` says what
differs, or why nothing is needed. Flags that SGLang has too (`--tensor-parallel-size`, `--served-model-name` …) are not here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """A flag of another engine. ``fields``: SGLang's in order of preference, the first one the release has counts."""

    engine: str
    fields: tuple[str, ...] = ()
    note: str = ""
    same_value: bool = True


_GRAPHS = ("cuda_graph_max_bs_decode", "cuda_graph_max_bs")
_MEMORY = "the fraction SGLang takes is for weights and KV cache alone, without activations and graphs: start lower"
_CHUNK = "counts the tokens of one prefill chunk"
_DEFAULT = "SGLang does it without a flag"

FOREIGN: dict[str, Foreign] = {
    "--gpu-memory-utilization": Foreign("vLLM", ("mem_fraction_static",), _MEMORY, same_value=False),
    "--max-model-len": Foreign("vLLM", ("context_length",)),
    "--max-num-seqs": Foreign("vLLM", ("max_running_requests",)),
    "--max-num-batched-tokens": Foreign("vLLM", ("chunked_prefill_size",), _CHUNK, same_value=False),
    "--enforce-eager": Foreign("vLLM", (), "decode without CUDA graphs is slow; leave it out"),
    "--max-seq-len-to-capture": Foreign("vLLM", (), "SGLang captures by batch size, not by length"),
    "--max-cudagraph-capture-size": Foreign("vLLM", _GRAPHS),
    "--cuda-graph-sizes": Foreign("vLLM", ("cuda_graph_bs_decode", "cuda_graph_bs")),
    "--enable-prefix-caching": Foreign("vLLM", (), _DEFAULT),
    "--no-enable-prefix-caching": Foreign("vLLM", ("disable_radix_cache",), same_value=False),
    "--enable-chunked-prefill": Foreign("vLLM", (), _DEFAULT),
    "--enable-expert-parallel": Foreign("vLLM", ("ep_size",), "takes the number of ranks", same_value=False),
    "--block-size": Foreign("vLLM", ("page_size",)),
    "--hf-overrides": Foreign("vLLM", ("json_model_override_args",)),
    "--guided-decoding-backend": Foreign("vLLM", ("grammar_backend",), same_value=False),
    "--enable-auto-tool-choice": Foreign("vLLM", (), "--tool-call-parser alone is enough"),
    "--limit-mm-per-prompt": Foreign("vLLM", ("limit_mm_data_per_request",)),
    "--lora-modules": Foreign("vLLM", ("lora_paths",)),
    "--max-loras": Foreign("vLLM", ("max_loras_per_batch",)),
    "--uvicorn-log-level": Foreign("vLLM", ("log_level_http",)),
    "--root-path": Foreign("vLLM", ("fastapi_root_path",)),
    "--enable-sleep-mode": Foreign("vLLM", ("enable_memory_saver",)),
    "--speculative-config": Foreign("vLLM", ("speculative_algorithm",), "one flag per setting", same_value=False),
    "--kv-transfer-config": Foreign("vLLM", ("disaggregation_mode",), "one flag per setting", same_value=False),
    "--distributed-executor-backend": Foreign("vLLM", (), _DEFAULT),
    "--swap-space": Foreign("vLLM", (), "there is no swap of requests"),
    "--disable-log-requests": Foreign("vLLM", (), "requests are logged only with --log-requests"),
    "--num-scheduler-steps": Foreign("vLLM", (), "the overlap scheduler is on by default"),
    "--async-scheduling": Foreign("vLLM", (), "the overlap scheduler is on by default"),
    "--max-seq-len": Foreign("TensorRT-LLM", ("context_length",)),
    "--max-batch-size": Foreign("TensorRT-LLM", ("max_running_requests",)),
    "--max-num-tokens": Foreign("TensorRT-LLM", ("chunked_prefill_size",), _CHUNK, same_value=False),
    "--kv-cache-free-gpu-memory-fraction": Foreign("TensorRT-LLM", ("mem_fraction_static",), _MEMORY, same_value=False),
    "--free-gpu-memory-fraction": Foreign("TensorRT-LLM", ("mem_fraction_static",), _MEMORY, same_value=False),
    "--extra-llm-api-options": Foreign("TensorRT-LLM", ("config",), "the file has other keys", same_value=False),
    "--model-id": Foreign("TGI", ("model_path",)),
    "--num-shard": Foreign("TGI", ("tp_size",)),
    "--sharded": Foreign("TGI", ("tp_size",), "takes the number of ranks", same_value=False),
    "--quantize": Foreign("TGI", ("quantization",), same_value=False),
    "--max-input-tokens": Foreign("TGI", ("context_length",), "counts prompt and answer together", same_value=False),
    "--max-input-length": Foreign("TGI", ("context_length",), "counts prompt and answer together", same_value=False),
    "--max-batch-prefill-tokens": Foreign("TGI", ("max_prefill_tokens",)),
    "--max-batch-total-tokens": Foreign("TGI", ("max_total_tokens",)),
    "--max-concurrent-requests": Foreign("TGI", ("max_queued_requests",)),
    "--cuda-memory-fraction": Foreign("TGI", ("mem_fraction_static",), _MEMORY, same_value=False),
    "--cuda-graphs": Foreign("TGI", ("cuda_graph_bs_decode", "cuda_graph_bs"), same_value=False),
    "--hostname": Foreign("TGI", ("host",)),
    "--ctx-size": Foreign("llama.cpp", ("context_length",)),
    "--n-gpu-layers": Foreign("llama.cpp", (), "all layers are on the cards"),
    "--gpu-layers": Foreign("llama.cpp", (), "all layers are on the cards"),
    "--parallel": Foreign("llama.cpp", ("max_running_requests",)),
    "--ubatch-size": Foreign("llama.cpp", ("chunked_prefill_size",), _CHUNK),
    "--flash-attn": Foreign("llama.cpp", ("attention_backend",), same_value=False),
    "--cache-type-k": Foreign("llama.cpp", ("kv_cache_dtype",), same_value=False),
    "--cache-type-v": Foreign("llama.cpp", ("kv_cache_dtype",), same_value=False),
    "--tensor-split": Foreign("llama.cpp", ("tp_size",), "splits evenly; takes the number of ranks", same_value=False),
    "--alias": Foreign("llama.cpp", ("served_model_name",)),
    "--model-draft": Foreign("llama.cpp", ("speculative_draft_model_path",)),
    "--draft-max": Foreign("llama.cpp", ("speculative_num_draft_tokens",)),
    "--reasoning-format": Foreign("llama.cpp", ("reasoning_parser",), same_value=False),
    "--jinja": Foreign("llama.cpp", (), "the model's own chat template is used by default"),
    "--cont-batching": Foreign("llama.cpp", (), _DEFAULT),
    "--no-mmap": Foreign("llama.cpp", ("weight_loader_disable_mmap",), same_value=False),
}
FOREIGN |= {
    "-ngl": FOREIGN["--n-gpu-layers"],
    "-c": FOREIGN["--ctx-size"],
    "-np": FOREIGN["--parallel"],
    "-ub": FOREIGN["--ubatch-size"],
    "-fa": FOREIGN["--flash-attn"],
    "-ctk": FOREIGN["--cache-type-k"],
    "-ctv": FOREIGN["--cache-type-v"],
    "-ts": FOREIGN["--tensor-split"],
    "-md": FOREIGN["--model-draft"],
    "-tp": Foreign("vLLM", ("tp_size",)),
    "-pp": Foreign("vLLM", ("pp_size",)),
    "-dp": Foreign("vLLM", ("dp_size",)),
    "-m": Foreign("llama.cpp", ("model_path",)),
}
