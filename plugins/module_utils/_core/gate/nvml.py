# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one door to NVML: loads pynvml late, and turns every failure of a single call into an absent value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..units import BYTES_PER_MIB

# Bits of the clocks event reasons (NVML reference); idle and application clocks say nothing about health.
THROTTLE_BITS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}
# Reaching the power limit is how a busy card normally runs; the others mean that the figure is not the card's own.
UNHEALTHY = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"})


class NoNvmlError(Exception):
    """NVML is not usable here; the text says why."""


class Nvml:
    """An open NVML session. ``library`` is the pynvml module, or a stand-in in tests."""

    def __init__(self, library: Any = None) -> None:
        if library is None:
            try:
                import pynvml
            except ImportError as exc:
                raise NoNvmlError(f"the Python package nvidia-ml-py is not there ({exc})") from exc
            library = pynvml
        self._lib = library
        try:
            library.nvmlInit()
            self.handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
        except library.NVMLError as exc:
            raise NoNvmlError(f"NVML does not answer ({exc})") from exc

    def close(self) -> None:
        self.ask("nvmlShutdown")

    def ask(self, name: str, *args: Any) -> Any:
        """Return what one NVML call returns (bytes as text), or None where it is not supported or fails."""
        try:
            value = getattr(self._lib, name)(*args)
        except (self._lib.NVMLError, AttributeError):
            return None
        return value.decode() if isinstance(value, bytes) else value

    def driver(self) -> dict[str, Any]:
        """Return driver_version and cuda_version ("13.0"), None where unknown."""
        cuda = self.ask("nvmlSystemGetCudaDriverVersion")
        version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
        return {"driver_version": self.ask("nvmlSystemGetDriverVersion"), "cuda_version": version}

    def identity(self, index: int) -> dict[str, Any]:
        """Return what does not change of one card."""
        handle = self.handles[index]
        capability = self.ask("nvmlDeviceGetCudaComputeCapability", handle)
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        persistence = self.ask("nvmlDeviceGetPersistenceMode", handle)
        ecc = self.ask("nvmlDeviceGetEccMode", handle)
        return {
            "index": index,
            "uuid": self.ask("nvmlDeviceGetUUID", handle),
            "name": self.ask("nvmlDeviceGetName", handle),
            "sm": None if capability is None else capability[0] * 10 + capability[1],
            "memory_mib": None if memory is None else memory.total // BYTES_PER_MIB,
            "power_limit_w": _watts(self.ask("nvmlDeviceGetPowerManagementLimit", handle)),
            "power_limit_range_w": _watt_range(self.ask("nvmlDeviceGetPowerManagementLimitConstraints", handle)),
            "persistence_mode": None if persistence is None else bool(persistence),
            "ecc": None if ecc is None else bool(ecc[0]),
            "pci_bus_id": self._pci(handle),
        }

    def reading(self, index: int) -> dict[str, Any]:
        """Return what does change of one card: power [W], utilisation 0…1, used memory [MiB], throttle reasons."""
        handle = self.handles[index]
        utilization = self.ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        reasons = self.ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:
            reasons = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return {
            "index": index,
            "power_w": _watts(self.ask("nvmlDeviceGetPowerUsage", handle)),
            "utilization_ratio": None if utilization is None else utilization.gpu / 100,
            "memory_mib": None if memory is None else memory.used // BYTES_PER_MIB,
            "throttle": None if reasons is None else [name for bit, name in THROTTLE_BITS.items() if reasons & bit],
        }

    def processes(self) -> dict[int, list[int]] | None:
        """Return card -> ids of compute processes, or None where the driver does not tell."""
        found: dict[int, list[int]] = {}
        for index, handle in enumerate(self.handles):
            running = self.ask("nvmlDeviceGetComputeRunningProcesses", handle)
            if running is None:
                return None
            found[index] = [process.pid for process in running]
        return found

    def _pci(self, handle: Any) -> str | None:
        info = self.ask("nvmlDeviceGetPciInfo", handle)
        bus = getattr(info, "busId", None)
        return bus.decode() if isinstance(bus, bytes) else bus


def gpu_facts(open_nvml: Callable[[], Nvml] = Nvml) -> dict[str, Any]:
    """Return {"available", "reason", "facts", "gpus"}; facts in the shape of FACTS.json, absent = unknown."""
    try:
        nvml = open_nvml()
    except NoNvmlError as exc:
        return {"available": False, "reason": str(exc), "facts": {}, "gpus": []}
    try:
        gpus = [nvml.identity(index) for index in range(len(nvml.handles))]
        facts: dict[str, Any] = {"platform": "cuda", "gpu_count": len(gpus), **nvml.driver()}
    finally:
        nvml.close()
    # One value per fact: cards that differ leave it unknown rather than described by the first one.
    for fact, key in (("gpu_name", "name"), ("sm", "sm"), ("gpu_memory_mib", "memory_mib")):
        values = {gpu[key] for gpu in gpus}
        facts[fact] = values.pop() if len(values) == 1 else None
    known = {key: value for key, value in facts.items() if value is not None}
    return {"available": True, "reason": None, "facts": known, "gpus": gpus}


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _watt_range(milliwatts: Any) -> list[float] | None:
    return None if milliwatts is None else [value / 1000 for value in milliwatts]
