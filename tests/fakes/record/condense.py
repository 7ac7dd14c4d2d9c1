"""Turn raw recordings into the small files that are kept: names, kinds and resolved values, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

# Bookkeeping of one process, machine paths, secrets: never kept.
LEFT_OUT = {
    "model_path",
    "tokenizer_path",
    "served_model_name",
    "random_seed",
    "port",
    "nccl_port",
    "launch_command",
    "api_key",
    "admin_api_key",
    "startup_time",
    "internal_states",
    "version",
}


def write_json(path: Path, value: object) -> None:
    """One entry a line: small diffs, small files."""
    if isinstance(value, Mapping):
        body = ",\n".join(f" {json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in value.items())
        text = "{\n" + body + "\n}\n"
    elif isinstance(value, list):
        text = "[\n" + ",\n".join(" " + json.dumps(v) for v in value) + "\n]\n"
    else:
        text = json.dumps(value) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def resolved(cases: list[dict[str, object]], *, version: str, hardware: str, model: str) -> dict[str, object]:
    """Executed outcomes: asked words → fields that SGLang's own code changed, [before, after]."""
    rows = []
    for case in cases:
        argv = [str(word) for word in case["argv"]]
        rows.append(
            {
                "argv": argv[2:],  # without --model-path X
                "outcome": case["outcome"],
                "message": case.get("message_contains") if case["outcome"] != "ok" else None,
                "changed": {
                    key: after
                    for key, (_before, after) in case.get("changed", {}).items()
                    if not key.startswith("_") and key not in LEFT_OUT
                },
            }
        )
    return {"sglang_version": version, "hardware": hardware, "model": model, "cases": rows}


def server_info(info: Mapping[str, object], flags: list[dict[str, object]]) -> dict[str, object]:
    """The keys of /server_info that are not flags, with their values, and those of ``internal_states`` that are nowhere else."""
    fields = {str(row["dest"]) for row in flags}
    own = {k: v for k, v in info.items() if k not in fields and k not in LEFT_OUT}
    states = info["internal_states"]
    assert isinstance(states, list)
    inner = {k: v for k, v in states[0].items() if k not in info}
    return {"own": own, "internal_state_own": inner, "key_count": len(info)}
