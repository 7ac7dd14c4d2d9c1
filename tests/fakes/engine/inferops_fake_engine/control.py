"""How the fake is told to misbehave: a JSON file, read at start and again whenever it changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import log


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
    num_layers: int | None = None  # when the model folder has no config.json
    # live
    report_fields: dict[str, Any] = field(default_factory=dict)  # /server_info says this instead (dotted for phases)
    models_empty: bool = False  # /v1/models lists nothing
    green_without_tokens: bool = False  # health is 200, generation never answers
    garbage: bool = False  # every token is "!"
    answers: dict[str, str] = field(default_factory=dict)  # substring of the prompt → answer
    usage_factor: float = 1.0  # completion_tokens are multiplied by this
    cached_ratio: float = 0.0  # share of each prompt that was "cached"
    ignore_max_tokens: bool = False  # replies run on to 4 × max_tokens
    hang_after_tokens: int | None = None  # a reply stops for ever after this many tokens
    crash_after_requests: int | None = None  # the process dies when this request has been taken
    fail_every: int | None = None  # every n-th generation answers 500
    throttle: dict[str, Any] = field(default_factory=dict)  # {"factor": 1.5, "reasons": ["sw_thermal"], "gpus": [0]}


def parse(values: dict[str, Any]) -> Control:
    known = {f.name for f in fields(Control)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown control {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    fixed = dict(values)
    if "drop_fields" in fixed:
        fixed["drop_fields"] = tuple(fixed["drop_fields"])
    if "slow_stages" in fixed:
        fixed["slow_stages"] = {int(k): float(v) for k, v in fixed["slow_stages"].items()}
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
