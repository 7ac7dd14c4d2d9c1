# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hardware predicates of SGLang answered from facts; an absent fact answers unknown, never false."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .facts import Facts
from .interpret.values import Unknown

# srt/utils.py, later srt/utils/common.py: which platform a predicate is true on.
_PLATFORM = {
    "is_cuda": {"cuda"},
    "is_hip": {"hip"},
    "is_cuda_alike": {"cuda", "hip"},
    "is_xpu": {"xpu"},
    "is_npu": {"npu"},
    "is_hpu": {"hpu"},
    "is_habana_available": {"hpu"},
    "is_musa": {"musa"},
    "is_mps": {"mps"},
    "is_sail": set(),
    "is_gfx95_supported": set(),
    "is_gfx942_supported": set(),
    "is_gfx1250_supported": set(),
    "cpu_has_amx_support": set(),
    "xpu_has_xmx_support": set(),
    "use_mlx": set(),
}
# Predicates above that are only certainly false off the platform named here.
_ONLY_ON = {
    "is_gfx95_supported": "hip",
    "is_gfx942_supported": "hip",
    "is_gfx1250_supported": "hip",
    "cpu_has_amx_support": "cpu",
    "xpu_has_xmx_support": "xpu",
    "use_mlx": "mps",
}
_MEMORY = {
    "get_nvgpu_memory_capacity": "cuda",
    "get_amdgpu_memory_capacity": "hip",
    "get_device_memory_capacity": None,
}
# The torch pinned by every release whose hardware needs it is built for at least this CUDA (SM100/SM120 need 12.8).
_ASSUMED_CUDA = "13.0"
# Superchips by name: srt/utils/common.py is_mnnvl_fabric_device.
_FABRIC = ("GB200", "GB300")
# Cards that share a board with NVIDIA's own Arm processor; any other is taken for a card in an x86-64 host.
_ARM = ("GH200", "GB200", "GB300", "GB10", "THOR", "ORIN")


class Host:
    """The host as SGLang's probes would see it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def fact(self, interpreter: Any, name: str) -> Any:
        value = getattr(self.facts, name)
        if value is None:
            return Unknown((name,))
        if name not in ("platform",):
            interpreter.read((f"{name}={value}",))
        return value

    def platform(self, interpreter: Any, names: set[str]) -> Any:
        if self.facts.platform is None:
            return Unknown(("platform",))
        return self.facts.platform in names

    def memory_mib(self, interpreter: Any) -> Any:
        value = self.fact(interpreter, "gpu_memory_mib")
        return value if isinstance(value, Unknown) else float(value)

    def capability(self, interpreter: Any) -> Any:
        sm = self.fact(interpreter, "sm")
        return (sm, sm) if isinstance(sm, Unknown) else divmod(sm, 10)

    def cuda_version(self, interpreter: Any) -> Any:
        known = self.platform(interpreter, {"cuda"})
        if isinstance(known, Unknown):
            return known
        return (self.facts.cuda_version or _ASSUMED_CUDA) if known else None

    def functions(self) -> dict[str, Callable[..., Any]]:
        out: dict[str, Callable[..., Any]] = {}
        for name, platforms in _PLATFORM.items():
            out[name] = self._predicate(name, platforms)
        for name in _MEMORY:
            out[name] = lambda i, function, args, kwargs: self._capacity(i)
        out["get_device_sm"] = lambda i, function, args, kwargs: self._sm(i)
        out["get_device_capability"] = lambda i, function, args, kwargs: self.capability(i)
        out["get_device_name"] = lambda i, function, args, kwargs: self.fact(i, "gpu_name")
        out["get_device_count"] = lambda i, function, args, kwargs: self.fact(i, "gpu_count")
        out["get_device"] = lambda i, function, args, kwargs: self._device(i)
        out["is_mnnvl_fabric_device"] = lambda i, function, args, kwargs: self._fabric(i)
        out["is_gpu_fabric_ready"] = lambda i, function, args, kwargs: self._fabric(i)
        out["get_nvidia_driver_version"] = lambda i, function, args, kwargs: Unknown(("driver_version",))
        out["get_nvidia_driver_version_str"] = lambda i, function, args, kwargs: self.fact(i, "driver_version")
        return out

    def _predicate(self, name: str, platforms: set[str]) -> Callable[..., Any]:
        def run(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
            only = _ONLY_ON.get(name)
            if only is not None:
                there = self.platform(interpreter, {only})
                return there if there is False else Unknown(there.needs if isinstance(there, Unknown) else (name,))
            return self.platform(interpreter, platforms)

        return run

    def _capacity(self, interpreter: Any) -> Any:
        gpu = self.platform(interpreter, {"cuda", "hip"})
        return (
            self.memory_mib(interpreter)
            if gpu is True
            else Unknown(gpu.needs if isinstance(gpu, Unknown) else ("device memory",))
        )

    def _sm(self, interpreter: Any) -> Any:
        gpu = self.platform(interpreter, {"cuda", "hip", "musa"})
        if gpu is not True:
            return gpu if isinstance(gpu, Unknown) else 0
        return self.fact(interpreter, "sm")

    def _device(self, interpreter: Any) -> Any:
        name = self.facts.platform
        return Unknown(("platform",)) if name is None else "cuda" if name == "hip" else name

    def machine(self, interpreter: Any) -> Any:
        """What ``platform.machine()`` says."""
        name = self.fact(interpreter, "gpu_name")
        return name if isinstance(name, Unknown) else "aarch64" if any(tag in name.upper() for tag in _ARM) else "x86_64"

    def _fabric(self, interpreter: Any) -> Any:
        name = self.fact(interpreter, "gpu_name")
        return name if isinstance(name, Unknown) else any(tag in name.upper() for tag in _FABRIC)
