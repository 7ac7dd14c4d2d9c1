# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of model, layout and hardware around a gate. Everything may be absent; nothing absent is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError
from ..topology.model import ModelShape
from ..topology.roofline import best_filling, stage_read_bytes


@dataclass(frozen=True)
class GateContext:
    """model_config is the content of config.json; promoted_result the result of the release that serves now.

    ``about`` is what the result tells beside its figures: ``asked`` {field: value}, ``check`` (a report of the argument
    check) and ``release`` {id, instance}.
    """

    model_config: Mapping[str, Any] | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    partition: str | None = None
    kv_cache_dtype: str = "auto"
    bandwidth_gb_s: float | None = None
    gpu_count: int | None = None
    promoted_result: Mapping[str, Any] | None = None
    about: Mapping[str, Any] | None = None

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

    def bound(self, *, concurrency: int, context_tokens: float) -> float | None:
        """Return the roofline bound at a concurrency [tokens/s], None when model, layout or bandwidth is unknown."""
        if self.model_config is None or self.tp_size is None or self.pp_size is None or self.bandwidth_gb_s is None:
            return None
        filling = best_filling(
            ModelShape.from_config(self.model_config),
            tp_size=self.tp_size,
            pp_size=self.pp_size,
            concurrency=concurrency,
            bandwidth_gb_s=self.bandwidth_gb_s,
            context_tokens=context_tokens,
            partition=self.partition,
            kv_cache_dtype=self.kv_cache_dtype,
        )
        return None if filling is None else filling.tokens_per_s

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
