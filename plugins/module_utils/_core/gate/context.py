# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of model, layout and hardware around a gate. Everything may be absent; nothing absent is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..errors import InferopsError
from ..topology.model import ModelShape
from ..topology.roofline import bound, stage_bandwidths, stage_read_bytes
from .bound import READ_OVER_COPY, PointBound


@dataclass(frozen=True)
class GateContext:
    """model_config is the content of config.json; promoted_result the result of the release that serves now.

    ``bandwidth_gb_s`` is the edition's value for one card, ``bandwidths_gb_s`` what was measured on each, in rank order.
    ``about`` is what the result tells beside its figures: ``asked`` {field: value}, ``check`` (a report of the argument
    check) and ``release`` {id, instance}.
    """

    model_config: Mapping[str, Any] | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    partition: str | None = None
    kv_cache_dtype: str = "auto"
    bandwidth_gb_s: float | None = None
    bandwidths_gb_s: Sequence[float] | None = None
    gpu_count: int | None = None
    promoted_result: Mapping[str, Any] | None = None
    about: Mapping[str, Any] | None = None
    server_here: bool | None = None
    """Whether the server runs on the client's machine, whose cards and processors are then its own. None: by its address."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any] | None) -> GateContext:
        """Return the context for a mapping; an unknown key is refused by name."""
        for key in raw or {}:
            if key not in cls.__dataclass_fields__:
                known = ", ".join(cls.__dataclass_fields__)
                raise InferopsError(f"{key} is not a key of the gate context", where=f"context.{key}", why=f"known: {known}")
        return cls(**{key: value for key, value in (raw or {}).items() if value is not None})

    def filled_from(self, resolved: Mapping[str, Any]) -> GateContext:
        """Return a context in which layout that was not given is the running server's own."""

        def layout(own: int | None, name: str) -> int | None:
            value = resolved.get(name)
            return own if own is not None or not isinstance(value, int) else value

        dtype = resolved.get("kv_cache_dtype")
        return GateContext(
            **{
                **{name: getattr(self, name) for name in self.__dataclass_fields__},
                "tp_size": layout(self.tp_size, "tp_size"),
                "pp_size": layout(self.pp_size, "pp_size"),
                "kv_cache_dtype": dtype if self.kv_cache_dtype == "auto" and isinstance(dtype, str) else self.kv_cache_dtype,
            }
        )

    def bound(self, *, concurrency: int, context_tokens: float) -> PointBound | None:
        """Return the roofline bound at a concurrency, None when model, layout or bandwidth is unknown."""
        if self.model_config is None or self.tp_size is None or self.pp_size is None:
            return None
        measured = self._measured()
        found = bound(
            ModelShape.from_config(self.model_config),
            tp_size=self.tp_size,
            pp_size=self.pp_size,
            concurrency=concurrency,
            bandwidth_gb_s=self.bandwidth_gb_s if measured is None else measured,
            context_tokens=context_tokens,
            partition=self.partition,
            kv_cache_dtype=self.kv_cache_dtype,
        )
        if found is None:
            return None
        ceiling = 1.0 if measured is None else max(READ_OVER_COPY, (self.bandwidth_gb_s or 0) / fmean(measured))
        return PointBound(found, self.pp_size > 1, ceiling)

    def assumptions(self) -> list[str]:
        """Say what the bound rests on."""
        measured = self._measured()
        if measured is None and self.bandwidth_gb_s is None:
            return []
        source = (
            f"{self.bandwidth_gb_s:g} GB/s per card, the value given for this edition"
            if measured is None
            else f"{min(measured):.0f} … {max(measured):.0f} GB/s per stage, measured by copies on the cards"
        )
        spread = "even stages" if self.partition is None else f"stages of {self.partition} layers"
        return [
            f"memory bandwidth: {source}",
            f"layout tp {self.tp_size}, pp {self.pp_size}, {spread}",
            "counted: weights once per micro-batch, the cache of each request",
            "routed experts chosen uniformly, requests filled into micro-batches in the best way",
            "not counted: compute, launches, links, all-reduces",
        ]

    def bandwidth(self) -> float | None:
        """Return the memory bandwidth of a card that the bound rests on [GB/s]; the mean over stages where each was measured."""
        measured = self._measured()
        return self.bandwidth_gb_s if measured is None else fmean(measured)

    def _measured(self) -> tuple[float, ...] | None:
        if not self.bandwidths_gb_s or self.tp_size is None or self.pp_size is None:
            return None
        return stage_bandwidths(self.bandwidths_gb_s, tp_size=self.tp_size, pp_size=self.pp_size)

    def evidence(self, require: Mapping[str, float]) -> dict[str, Any]:
        """Return what the diagnosis may use beside the result."""
        shape = None if self.model_config is None else ModelShape.from_config(self.model_config)
        reads = None
        if shape is not None and self.tp_size is not None and self.pp_size is not None:
            reads = stage_read_bytes(shape, tp_size=self.tp_size, pp_size=self.pp_size, tokens=1, partition=self.partition)
        layers = None if shape is None or shape.layers is None else len(shape.layers)
        return {
            "pp_size": self.pp_size,
            "tp_size": self.tp_size,
            "num_layers": layers,
            "stage_read_bytes": None if reads is None else list(reads),
            "require": dict(require),
        }
