"""The answers that describe the server: /server_info, /model_info, /v1/models."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

from .state import Server


def _overlay(values: dict[str, Any], dotted: str, value: Any) -> None:
    *path, last = dotted.split(".")
    for key in path:
        values = values.setdefault(key, {})
    values[last] = value


def server_info(server: Server) -> dict[str, Any]:
    info = deepcopy(server.args)
    info.pop("config", None)
    graphs = server.resolved.decode_graphs
    per_stage_gb = round(9.8 * server.num_layers / server.pp_size / server.tp_size, 3)
    state = {
        **deepcopy(info),
        **deepcopy(server.recording.server_info["internal_state_own"]),
        "world_size": server.pp_size * server.tp_size,
        "last_gen_throughput": server.engine.tokens_per_s() if server.engine else 0.0,
        "decode_cuda_graph_bs": list(info["cuda_graph_config"]["decode"]["bs"] or []) if graphs else [],
    }
    state["memory_usage"] |= {
        "weight": per_stage_gb,
        "kvcache": 6.4,
        "startup_available": 92.1,
        "token_capacity": server.kv_tokens,
    }
    state["memory_usage"]["graph"]["decode"] = 1.2 if graphs else 0.0
    state["decode_cuda_graph_memory_gb"] = 1.2 if graphs else 0.0
    info |= {
        "launch_command": " ".join(server.launch_words),
        "status": "ready" if server.phase == "ready" else server.phase,
        "startup_time": time.time() - server.started_at,
        "max_total_num_tokens": server.kv_tokens,
        "max_req_input_len": server.context_length - 6,
        "internal_states": [state],
        "version": server.recording.version,
        "simulated": True,
        "simulated_from": list(server.resolved.recorded_argv),
    }
    for dotted, value in server.control.report_fields.items():
        _overlay(info, dotted, value)
        _overlay(state, dotted, value)
    return info


def model_info(server: Server) -> dict[str, Any]:
    config = server.model_config
    args = server.args
    return {
        "model_path": args["model_path"],
        "served_model_name": server.served_name,
        "tokenizer_path": args["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": args["load_format"],
        "reasoning_parser": args["reasoning_parser"],
        "tool_call_parser": args["tool_call_parser"],
        "disaggregation_mode": args["disaggregation_mode"],
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": config.get("model_type"),
        "architectures": config.get("architectures"),
    }


def models(server: Server) -> dict[str, Any]:
    card = {
        "id": server.served_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": server.served_name,
        "parent": None,
        "max_model_len": server.context_length,
    }
    return {"object": "list", "data": [] if server.control.models_empty else [card]}
