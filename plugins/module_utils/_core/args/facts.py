# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of the host. An absent fact is unknown, never false, 0 or empty."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import InferopsError

_NUMBERS = {"gpu_count": int, "sm": int, "gpu_memory_mib": int, "gpu_bandwidth_gb_s": float}
_TEXTS = ("platform", "gpu_name", "cuda_version", "driver_version")
# 3.0 (Kepler); what is smaller is a compute capability written with its dot, or its major part alone.
LEAST_SM = 30
# Beside the package in a site-packages folder: what torch was built for. Read in torch 2.4 … 2.14.
TORCH = "../torch/version.py"
_BUILT_FOR = re.compile(r"^(cuda|hip)\b[^=\n]*=[ \t]*(.*)$", re.MULTILINE)
PLATFORMS = ("cuda", "hip", "cpu", "npu", "xpu", "hpu", "mps", "musa")


@dataclass(frozen=True)
class Facts:
    """Facts of one host; None is unknown. ``gpu_memory_mib`` [MiB] is per card, as nvidia-smi prints it."""

    platform: str | None = None
    gpu_name: str | None = None
    gpu_count: int | None = None
    sm: int | None = None
    gpu_memory_mib: int | None = None
    gpu_bandwidth_gb_s: float | None = None
    cuda_version: str | None = None
    driver_version: str | None = None
    packages: Mapping[str, str] | None = None

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Facts:
        """Read FACTS.json. An unknown key or a value of the wrong kind raises InferopsError; None is unknown.

        >>> Facts.from_dict({"sm": 120, "gpu_count": None}).sm
        120
        """
        if not isinstance(raw, Mapping):
            raise InferopsError(f"facts are a mapping, not {type(raw).__name__}", where="facts", do='write {"sm": 120, …}')
        known = [field.name for field in fields(cls)]
        for key in raw:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                raise InferopsError(
                    f"unknown fact: {key}",
                    where=f"facts.{key}",
                    why="a misspelled fact would be unknown without anyone noticing",
                    do=f"write {near[0]}" if near else f"use one of {', '.join(known)}",
                )
        return cls(**{key: _read(key, value) for key, value in raw.items() if value is not None})

    def through(self, torch: str | None) -> Facts:
        """Return the facts as SGLang sees them: through a torch that was built for processors a host with cards has none.

        torch: text of torch/version.py of the environment, None where it is not known.

        >>> Facts(platform="cuda", sm=120).through("cuda: Optional[str] = None\\nhip: Optional[str] = None\\n").platform
        'cpu'
        """
        built = dict(_BUILT_FOR.findall(torch or ""))
        without = bool(built) and all(value.strip() == "None" for value in built.values())
        return replace(self, platform="cpu") if without and self.platform in ("cuda", "hip") else self


def _read(key: str, value: Any) -> Any:
    if key == "packages":
        if isinstance(value, Mapping):
            return {str(name): str(version) for name, version in value.items()}
        raise _wrong(key, value, "a mapping of distribution name to version")
    if key in _TEXTS:
        if not isinstance(value, str):
            raise _wrong(key, value, "text")
        if key == "platform" and value not in PLATFORMS:
            raise _wrong(key, value, f"one of {', '.join(PLATFORMS)}")
        return value
    kind = _NUMBERS[key]
    try:
        number = kind(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError):
        number = None
    if number is None or number != float(value) or number < 0:
        raise _wrong(key, value, "a whole number, 0 or more" if kind is int else "a number, 0 or more")
    if key == "sm" and number < LEAST_SM:
        raise _wrong(key, value, "the compute capability times ten, such as 120 for 12.0")
    return number


def _wrong(key: str, value: Any, expected: str) -> InferopsError:
    return InferopsError(
        f"fact {key} is {value!r}, expected {expected}", where=f"facts.{key}", do="correct it, or leave it out (= unknown)"
    )
