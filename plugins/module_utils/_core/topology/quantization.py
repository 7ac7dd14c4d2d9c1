# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bits one parameter of a named module takes in a checkpoint, told from its quantization_config.

The module's name decides: checkpoints list modules that stay in full precision. What a method does that is not
known here gives None, never a guess. Methods and keys: compressed-tensors (config_groups, ignore), fp8
(weight_block_size), gptq and awq (bits, group_size), mxfp4 (experts only), modelopt (quant_algo).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DTYPE_BITS = {"bfloat16": 16.0, "float16": 16.0, "half": 16.0, "float32": 32.0, "float": 32.0, "float8_e4m3fn": 8.0}
SCALE_BITS = 16.0
# In each of these methods the scale of a group is one byte: E4M3 per 16 (NVFP4), E8M0 per 32 (MXFP4).
NVFP4_BITS = 4 + 8 / 16
MXFP4_BITS = 4 + 8 / 32
MODELOPT_BITS = {"FP8": 8.0, "NVFP4": NVFP4_BITS, "FP4": NVFP4_BITS}
# Kept in full precision by every method unless a target names it.
HEAD = "lm_head"


@dataclass(frozen=True)
class Quantization:
    """Bits per parameter by module name; ``bits`` answers None where it cannot be told."""

    method: str | None
    full_bits: float | None
    groups: tuple[tuple[tuple[str, ...], float | None], ...] = ()
    ignore: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | None, dtype: str | None) -> Quantization:
        """Read a quantization_config; an absent one means full precision everywhere."""
        full = DTYPE_BITS.get(str(dtype).removeprefix("torch.")) if dtype else None
        if not config:
            return cls(None, full)
        if not isinstance(config, Mapping):
            return cls("unreadable", full)
        method = str(config.get("quant_method") or "unknown").lower()
        keys = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules")
        ignore = next((config[key] for key in keys if config.get(key)), ())
        names = tuple(str(name) for name in ignore) if isinstance(ignore, (list, tuple)) else ()
        return cls(method, full, _groups(method, config), names)

    def bits(self, name: str) -> float | None:
        """Return bits per parameter of the linear module ``name``, scales included, or None."""
        if self.method is None or any(_matches(pattern, name) for pattern in self.ignore):
            return self.full_bits
        for targets, bits in self.groups:
            if any(_matches(target, name) for target in targets):
                return bits
            if "Linear" in targets and not name.endswith(HEAD):
                return bits
        return self.full_bits if self.groups else None


def _groups(method: str, config: Mapping[str, Any]) -> tuple[tuple[tuple[str, ...], float | None], ...]:
    if method == "compressed-tensors" or (method.startswith("modelopt") and config.get("config_groups")):
        groups = config.get("config_groups")
        if not isinstance(groups, Mapping):
            return ()
        members = [group for group in groups.values() if isinstance(group, Mapping)]
        return tuple((tuple(group.get("targets") or ()), _group_bits(group.get("weights"))) for group in members)
    if method == "fp8":
        block = config.get("weight_block_size")
        scale = 32 / (block[0] * block[1]) if block else 0.0
        return ((("Linear",), 8 + scale),)
    if method in {"gptq", "awq", "gptq_marlin", "awq_marlin"} and config.get("bits"):
        bits, group = float(config["bits"]), int(config.get("group_size") or -1)
        return ((("Linear",), bits + ((SCALE_BITS + bits) / group if group > 0 else 0.0)),)
    if method == "mxfp4":
        return ((("re:.*experts.*",), MXFP4_BITS),)
    if method.startswith("modelopt"):
        known = MODELOPT_BITS.get(str(config.get("quant_algo") or "").upper())
        return ((("Linear",), known),) if known else ()
    return ()


def _group_bits(weights: Any) -> float | None:
    """Bits per parameter of one compressed-tensors group: value, plus scale and zero point shared by the group."""
    if not isinstance(weights, Mapping) or not weights.get("num_bits"):
        return None
    bits = float(weights["num_bits"])
    strategy, size = weights.get("strategy"), weights.get("group_size")
    if strategy in {"group", "tensor_group"} and size and size > 0:
        scale = 8.0 if weights.get("type") == "float" and bits == 4 else SCALE_BITS
        zero = 0.0 if weights.get("symmetric", True) else bits
        return bits + (scale + zero) / float(size)
    if strategy in {"channel", "tensor", "block", None}:
        return bits
    return None


def _matches(pattern: str, name: str) -> bool:
    """Tell whether an ignore or target entry means this module: "re:" is a regular expression from the start of the
    name, anything else a whole name, a parent of it, or a component (``lm_head``)."""
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], name) is not None
        except re.error:
            return False
    pattern = pattern.rstrip("*.")
    return f".{pattern}." in f".{name}."
