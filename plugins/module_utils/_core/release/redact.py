# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What may be kept of a running server's answers: an allow-list of fields, and texts with every known secret cut out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "[hidden]"

# Field names of ServerArgs and of the answer around them, read in srt/server_args.py and srt/entrypoints/http_server.py of
# 0.5.12 and 0.5.23. Kept are settings that explain speed and memory; no address, path with a token, command or key is in it.
KEPT_TEXT = """
    version model_path served_model_name tokenizer_path load_format quantization dtype kv_cache_dtype device context_length
    tp_size pp_size dp_size ep_size nnodes node_rank pp_max_micro_batch_size pp_async_batch_depth pp_enable_dynamic_chunking
    mem_fraction_static max_running_requests max_total_tokens max_total_num_tokens max_queued_requests max_req_input_len
    chunked_prefill_size max_prefill_tokens page_size schedule_policy schedule_conservativeness
    attention_backend prefill_attention_backend decode_attention_backend sampling_backend grammar_backend moe_runner_backend
    moe_a2a_backend mm_attention_backend disable_cuda_graph cuda_graph_config cuda_graph_max_bs cuda_graph_bs
    cuda_graph_max_bs_decode cuda_graph_bs_decode disable_cuda_graph_padding enable_piecewise_cuda_graph
    disable_piecewise_cuda_graph disable_overlap_schedule disable_radix_cache enable_mixed_chunk enable_torch_compile
    enable_metrics enable_mis enable_dp_attention disable_custom_all_reduce enable_hierarchical_cache
    speculative_algorithm speculative_num_steps reasoning_parser tool_call_parser trust_remote_code skip_server_warmup
    enable_deterministic_inference enable_memory_saver stream_interval watchdog_timeout startup_time simulated
"""
KEPT_FIELDS = frozenset(KEPT_TEXT.split())
SECRET_NAME = r"(?:admin[-_])?api[-_]key|ssl[-_]keyfile[-_]password|hf[-_]token|watermark[-_]\w*key"
SECRET_FIELD = re.compile(rf"""(?i)((?:{SECRET_NAME})['"]?\s*(?:=|:|\s)\s*)('[^']*'|"[^"]*"|[^\s,;)}}\]]+)""")
BEARER = re.compile(r"(?i)(bearer\s+)\S+")


def keep_allowed(server_info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a /server_info answer that may be written down."""
    return {key: value for key, value in server_info.items() if key in KEPT_FIELDS}


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without the given secrets and without values that stand behind the names of secrets.

    >>> scrub("api_key='sk-1', tp_size=8")
    "api_key=[hidden], tp_size=8"
    """
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = SECRET_FIELD.sub(lambda found: found[1] + (found[2] if found[2] in ("None", "null", HIDDEN) else HIDDEN), text)
    return BEARER.sub(rf"\1{HIDDEN}", text)


def read_secrets(text: str | None) -> dict[str, str]:
    """Return name and value of every string in the engine's --config file, names with underscores.

    The file is JSON (which is YAML too) or flat YAML, one ``key: value`` per line, value plain or in quotes.
    """
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError:
        data = {}
        for line in text.splitlines():
            name, colon, value = line.partition(":")
            if colon and not line.lstrip().startswith("#") and not line.startswith((" ", "-")):
                data[name.strip()] = _plain(value.strip())
    if not isinstance(data, dict):
        return {}
    return {str(key).replace("-", "_"): value for key, value in data.items() if isinstance(value, str) and value}


def secret_values(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of a --config file that are secrets by their name."""
    return tuple(value for name, value in config.items() if re.fullmatch(SECRET_NAME, name, flags=re.IGNORECASE))


def _plain(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value.split(" #", 1)[0].rstrip()
