# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read a release's record of server arguments as plain values, before and after it was resolved."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

# Differs from run to run, or is derived from the command line as a whole.
NOISE = frozenset(
    {"random_seed", "port", "nccl_port", "rl_on_policy_target_seed", "_launch_command", "model_config"}
    | {"model_specific_adjustment"}
)
_GRAPHS = "cuda_graph_config"
_SHORT = 12


def plain(value: Any) -> Any:
    """Return a JSON value; a long list of integers as text with its length and ends."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if len(value) > _SHORT and all(isinstance(item, int) for item in value):
            return f"list of {len(value)}: {value[0]}..{value[-1]}"
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    names = _names(type(value))
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    return plain(value.to_dict()) if hasattr(value, "to_dict") else str(value)


def _names(kind: type) -> list[str]:
    if hasattr(kind, "__struct_fields__"):  # msgspec
        return list(kind.__struct_fields__)
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def requested(record: Any) -> dict[str, Any]:
    """Return what stands on a record that is not resolved yet; phases of the graph configuration as dotted names."""
    values = _dotted({name: plain(getattr(record, name)) for name in _names(type(record)) if hasattr(record, name)})
    for name, default in _graph_defaults().items():
        # cuda_graph_config.decode.max_bs may have been asked for as cuda_graph_max_bs_decode.
        phase, key = name.split(".")[1:]
        explicit = values.get(f"cuda_graph_{key}_{phase}")
        if values.get(name) is None:
            values[name] = default if explicit is None else explicit
    return values


def resolved(record: Any) -> dict[str, Any]:
    """Return what a resolved record says."""
    kind = type(record)
    if hasattr(record, "resolved_dict"):
        return _dotted({name: plain(value) for name, value in record.resolved_dict().items()})
    if hasattr(kind, "resolve_once"):
        from sglang.srt.arg_groups.overrides import resolution_result

        return _dotted({name: plain(resolution_result(record, name)) for name in _names(kind)})
    return _dotted({name: plain(getattr(record, name)) for name in _names(kind) if hasattr(record, name)})


def _dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    phases = values.get(_GRAPHS)
    if not isinstance(phases, dict):
        return dict(values)
    found = {name: value for name, value in values.items() if name != _GRAPHS}
    for phase, settings in phases.items():
        if isinstance(settings, dict):
            found.update({f"{_GRAPHS}.{phase}.{key}": value for key, value in settings.items()})
        else:
            found[f"{_GRAPHS}.{phase}"] = settings
    return found


def _graph_defaults() -> dict[str, Any]:
    try:
        from sglang.srt.model_executor.cuda_graph_config import default_cuda_graph_config
    except ImportError:
        return {}
    return {name: value for name, value in _dotted({_GRAPHS: plain(default_cuda_graph_config())}).items() if name.count(".") == 2}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return ``{field: [requested or default, effective]}`` of what differs, without bookkeeping (``_name``) and noise."""
    told = {name: value for name, value in after.items() if name not in NOISE and not name.startswith("_")}
    return {name: [before.get(name), value] for name, value in told.items() if before.get(name) != value}
