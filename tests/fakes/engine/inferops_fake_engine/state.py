"""One running fake server: what was asked, what resulted, the engine, and where in its life it is."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .clock import FITTED, Continuous, Faults, Pipeline, build_stages
from .control import Control, ControlFile
from .driver import Engine
from .prefix_cache import PrefixCache
from .recording import Recording
from .resolve import Resolved

K2_6_LAYERS = 61
KV_TOKENS = 262_144  # assumed size of the KV pool; its only use is to be reported


@dataclass
class Server:
    recording: Recording
    resolved: Resolved
    launch_words: list[str]
    control_file: ControlFile
    timescale: float
    started_at: float = field(default_factory=time.time)
    phase: str = "loading"  # loading → warmup → ready → draining
    engine: Engine | None = None
    requests_taken: int = 0
    logged_passes: int = 0
    prefix_cache: PrefixCache = field(default_factory=PrefixCache)
    http_requests: dict[tuple[str, str, int], int] = field(default_factory=dict)

    @property
    def control(self) -> Control:
        return self.control_file.read()

    @property
    def args(self) -> dict[str, Any]:
        return self.resolved.values

    @property
    def served_name(self) -> str:
        return self.args["served_model_name"]

    @property
    def pp_size(self) -> int:
        return int(self.args["pp_size"])

    @property
    def tp_size(self) -> int:
        return int(self.args["tp_size"])

    @property
    def model_config(self) -> dict[str, Any]:
        """config.json of the model folder; nothing when there is none, since the fake needs no weights."""
        path = Path(self.args["model_path"]) / "config.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    @property
    def context_length(self) -> int:
        text = self.model_config.get("text_config", self.model_config)
        return int(self.args["context_length"] or text.get("max_position_embeddings", 262_144))

    @property
    def num_layers(self) -> int:
        text = self.model_config.get("text_config", self.model_config)
        return int(self.control.num_layers or text.get("num_hidden_layers", K2_6_LAYERS))

    @property
    def kv_tokens(self) -> int:
        return self.control.kv_tokens or KV_TOKENS

    def build_pipeline(self) -> Pipeline:
        control, args = self.control, self.args
        parameters = replace(FITTED, **control.parameters)
        stages = build_stages(
            num_layers=self.num_layers,
            pp_size=self.pp_size,
            tp_size=self.tp_size,
            graphs=self.resolved.decode_graphs,
            graph_max_batch=args["cuda_graph_config"]["decode"]["max_bs"] or 256,
            parameters=parameters,
            slowdown=control.slow_stages,
        )
        return (Continuous if control.continuous else Pipeline)(
            stages,
            async_depth=int(args["pp_async_batch_depth"] or 0),
            parameters=parameters,
            max_running=args["max_running_requests"] or 2048,
            max_micro_batch=args["pp_max_micro_batch_size"],
            chunked_prefill=args["chunked_prefill_size"] or 8192,
            cohorted=control.cohorted,
            faults=Faults(
                slow_hops=control.slow_hops,
                kv_tokens=control.kv_tokens,
                compile_after=control.compile_after,
                compile_ms=control.compile_ms,
            ),
        )
