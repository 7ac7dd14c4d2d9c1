"""What a command line results in: the nearest recorded outcome of SGLang's own code, overlaid with the explicit flags.

Rule: of the recorded command lines whose flags are all among those asked (same values), the one with most flags is taken.
Result = defaults ← explicit flags ← what SGLang changed in the recording.  A flag that is asked but not part of the
recording stays as asked.  Nothing is derived by a resolver of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .arguments import defaults, parse
from .recording import Recording

PHASE_FLAGS = {
    "cuda_graph_backend_decode": "cuda_graph_config.decode.backend",
    "cuda_graph_backend_prefill": "cuda_graph_config.prefill.backend",
    "cuda_graph_max_bs_decode": "cuda_graph_config.decode.max_bs",
    "cuda_graph_max_bs_prefill": "cuda_graph_config.prefill.max_bs",
    "cuda_graph_bs_decode": "cuda_graph_config.decode.bs",
    "cuda_graph_bs_prefill": "cuda_graph_config.prefill.bs",
}
PHASE_DEFAULTS = {"cuda_graph_config.decode.backend": "full", "cuda_graph_config.prefill.backend": "breakable"}


class Refused(Exception):
    """SGLang itself refused the recorded command line."""


@dataclass(frozen=True)
class Resolved:
    values: dict[str, Any]  # nested phases as a dict under cuda_graph_config
    explicit: dict[str, Any]
    recorded_argv: tuple[str, ...]  # the recording this rests on

    @property
    def decode_graphs(self) -> bool:
        return self.values["cuda_graph_config"]["decode"]["backend"] != "disabled"


def _nearest(recording: Recording, explicit: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    best: tuple[dict[str, Any], dict[str, Any]] | None = None
    for case in recording.resolved["cases"]:
        asked = parse(recording.flags, ["--model-path", "x", *case["argv"]])
        asked.pop("model_path")
        if all(explicit.get(k) == v for k, v in asked.items()) and (best is None or len(asked) > len(best[1])):
            best = (case, asked)
    assert best is not None  # the recording of no flags at all fits everything
    return best


def resolve(recording: Recording, argv: Sequence[str], *, drop: Sequence[str] = ()) -> Resolved:
    """``drop`` names fields whose flag is ignored on purpose: a launcher that loses what it was given."""
    given = parse(recording.flags, argv)
    explicit = {k: v for k, v in given.items() if k not in drop}
    case, asked = _nearest(recording, explicit)
    if case["outcome"] != "ok":
        raise Refused(case["message"] or "refused")
    flat: dict[str, Any] = {**PHASE_DEFAULTS}
    flat.update({target: explicit[flag] for flag, target in PHASE_FLAGS.items() if flag in explicit})
    flat.update({k: v for k, v in case["changed"].items() if k not in explicit or k in asked})
    values = {**defaults(recording.flags), **recording.server_info["own"], **explicit}
    graphs: dict[str, dict[str, Any]] = {"decode": {}, "prefill": {}}
    for key, value in flat.items():
        head, dummy, rest = key.partition(".")
        if head == "cuda_graph_config":
            phase, dummy, name = rest.partition(".")
            graphs[phase][name] = value
        else:
            values[key] = value
    for phase in graphs.values():
        for name in (
            "max_bs",
            "bs",
            "max_context_size",
            "full_prefill_max_req",
            "full_prefill_prefix_chunk_tokens",
            "max_seq_len",
        ):
            phase.setdefault(name, None)
        phase.setdefault("tc_compiler", "eager")
    values["cuda_graph_config"] = graphs
    values["tokenizer_path"] = explicit.get("tokenizer_path", explicit["model_path"])
    values["served_model_name"] = explicit.get("served_model_name", explicit["model_path"])
    return Resolved(values, explicit, tuple(case["argv"]))
