# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What only work on a card can tell, done on idle cards alone: whether CUDA works there, and its memory bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..topology.bandwidth import measure_apart, remembered
from ..topology.contexts import create_contexts
from .nvml import NoNvmlError, Nvml

# What a driver itself keeps on an idle card; more is somebody's, who may be in a namespace that we do not see.
IDLE_MIB = 2048


def card_bandwidths(
    *,
    allowed: bool,
    file: Path | None,
    open_nvml: Callable[[], Nvml] = Nvml,
    measure: Callable[[Sequence[str]], dict[str, Any]] = measure_apart,
) -> dict[str, Any]:
    """Return {"bandwidths_gb_s": one figure per card in NVML's order, or None where one is not known, "bandwidth_notes": […]}."""
    try:
        nvml = open_nvml()
    except NoNvmlError as exc:
        return {"bandwidths_gb_s": None, "bandwidth_notes": [str(exc)]}
    try:
        uuids, busy = _cards(nvml, look=allowed)
    finally:
        nvml.close()
    notes = [f"card {uuid} is not measured: {why}" for uuid, why in busy]
    found: dict[str, Any] = {"gb_s": {}, "problems": []}
    idle = [uuid for uuid in uuids if uuid not in dict(busy)] if allowed else []
    if idle:
        found = measure(idle)
    known = remembered(file, found["gb_s"])
    figures = [known.get(uuid) for uuid in uuids]
    whole = bool(figures) and None not in figures
    return {"bandwidths_gb_s": figures if whole else None, "bandwidth_notes": [*notes, *found["problems"]]}


def card_contexts(
    *,
    allowed: bool,
    open_nvml: Callable[[], Nvml] = Nvml,
    create: Callable[[Sequence[str]], dict[str, str | None]] = create_contexts,
) -> dict[str, Any]:
    """Return {"contexts": per card in NVML's order its UUID, whether CUDA works there (None: not tried) and what was said}."""
    if not allowed:
        return {"contexts": []}
    try:
        nvml = open_nvml()
    except NoNvmlError:
        return {"contexts": []}
    try:
        uuids, busy = _cards(nvml, look=True)
    finally:
        nvml.close()
    left = dict(busy)
    said = create([uuid for uuid in uuids if uuid not in left])
    tried = [{"uuid": uuid, "works": said[uuid] is None, "said": said[uuid]} if uuid in said else None for uuid in uuids]
    return {
        "contexts": [one or {"uuid": uuid, "works": None, "said": left[uuid]} for uuid, one in zip(uuids, tried, strict=True)]
    }


def _cards(nvml: Nvml, *, look: bool) -> tuple[list[str], list[tuple[str, str]]]:
    uuids = [str(nvml.identity(index)["uuid"]) for index in range(len(nvml.handles))]
    return uuids, _busy(nvml, uuids) if look else []


def _busy(nvml: Nvml, uuids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cards that must be left alone, with the reason; a card of which nothing is known is one of them."""
    owners, busy = nvml.processes(), []
    for index, uuid in enumerate(uuids):
        used = nvml.slow_reading(index)["memory_mib"]
        if owners is None or used is None:
            busy.append((uuid, "the driver does not tell whether it is idle"))
        elif owners[index]:
            busy.append((uuid, f"process {owners[index][0]} computes on it"))
        elif used > IDLE_MIB:
            busy.append((uuid, f"{used} MiB of its memory are taken"))
    return busy
