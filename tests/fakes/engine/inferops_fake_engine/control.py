"""How the fake is told to misbehave: a JSON file, read at start and again whenever it changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import log
from .clock import Parameters


@dataclass(frozen=True)
class Control:
    """One key of the file per field; an unknown key is an error.  *start*: read at start only; the others act live."""

    # start
    timescale: float = 1.0  # > 1: everything simulated runs this many times faster (environment INFEROPS_FAKE_TIMESCALE wins)
    start_seconds: float = 3.0  # simulated time to load weights
    never_ready: str | None = None  # "loading": the port never opens · "warmup": 503 for ever
    crash_at_start: bool = False  # a child dies during loading
    out_of_memory: str | None = None  # "init": not enough memory for the KV cache · "runtime": dies at the next prefill
    drop_fields: tuple[str, ...] = ()  # flags that never reach the engine
    slow_stages: dict[int, float] = field(default_factory=dict)  # pp_rank → factor
    cohorted: bool = False  # requests that arrive join the fullest slot
    continuous: bool = False  # the second scheduler model, with other laws
    parameters: dict[str, float] = field(default_factory=dict)  # of the clock, by name (clock/parameters.py)
    slow_hops: dict[int, float] = field(default_factory=dict)  # pp_rank that sends → extra ms
    kv_tokens: int | None = None  # size of the KV pool
    compile_after: tuple[int, ...] = ()  # after so many admitted requests a pass waits for a kernel that is compiled
    compile_ms: float = 3000.0  # simulated time of one such wait
    num_layers: int | None = None  # when the model folder has no config.json
    # live
    report_fields: dict[str, Any] = field(default_factory=dict)  # /server_info says this instead (dotted for phases)
    models_empty: bool = False  # /v1/models lists nothing
    green_without_tokens: bool = False  # health is 200, generation never answers
    garbage: bool = False  # every token is "!"
    answers: dict[str, str] = field(default_factory=dict)  # substring of the prompt → answer
    usage_factor: float = 1.0  # completion_tokens are multiplied by this
    cached_ratio: float | None = None  # share of each prompt that was "cached", instead of what the prefix cache really holds
    wrong_answers: float = 0.0  # share of the questions with one right answer that get a wrong one
    tool_calls: str = "ok"  # "broken_json" · "wrong_name" · "as_text": how the tool-call parser fails
    cache_hit: str = "ok"  # what a prompt found in the prefix cache does: "crash" · "wrong": another answer
    ignore_max_tokens: bool = False  # replies run on to 4 × max_tokens
    hang_after_tokens: int | None = None  # a reply stops for ever after this many tokens
    crash_after_requests: int | None = None  # the process dies when this request has been taken
    fail_every: int | None = None  # every n-th generation answers 500
    link_delay_ms: float = 0.0  # wall-clock time that each answer waits on the network before its first byte
    link_bytes_per_s: float | None = None  # what the network lets through, all answers together
    cards: dict[str, dict[str, int]] = field(default_factory=dict)  # index → facts of the stand-in NVML, say {"3": {"xid": 79}}
    throttle: dict[str, Any] = field(default_factory=dict)  # {"factor": 1.5, "reasons": ["sw_thermal"], "gpus": [0]}


def parse(values: dict[str, Any]) -> Control:
    known = {f.name for f in fields(Control)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown control {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    fixed = dict(values)
    if "drop_fields" in fixed:
        fixed["drop_fields"] = tuple(fixed["drop_fields"])
    for name in ("slow_stages", "slow_hops"):
        if name in fixed:
            fixed[name] = {int(k): float(v) for k, v in fixed[name].items()}
    if "compile_after" in fixed:
        fixed["compile_after"] = tuple(sorted(fixed["compile_after"]))
    wrong = sorted(set(fixed.get("parameters", {})) - set(Parameters.sources()))
    if wrong:
        raise ValueError(f"unknown parameter {', '.join(wrong)}; known: {', '.join(Parameters.sources())}")
    return Control(**fixed)


class ControlFile:
    """The file as it is now; a missing file is an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._control = Control()
        self.read()

    def read(self) -> Control:
        try:
            stat = self.path.stat()
        except OSError:
            self._stamp, self._control = None, Control()
            return self._control
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._stamp:
            first, self._stamp = self._stamp is None, stamp
            try:
                self._control = parse(json.loads(self.path.read_text() or "{}"))
            except (ValueError, TypeError) as problem:
                if first:
                    raise
                log.line(f"simulated: {self.path} is not understood, the controls stay as they were: {problem}", level="ERROR")
        return self._control
