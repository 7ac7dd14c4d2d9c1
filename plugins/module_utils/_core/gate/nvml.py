# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one door to NVML: loads pynvml late, and turns every failure of a single call into an absent value."""

from __future__ import annotations

import ctypes
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
# NVML reference: clock kinds, event kinds, PCIe counters, ECC counters, capabilities between two cards.
SM_CLOCK, MEMORY_CLOCK = 1, 2
XID_EVENT = 8
PCIE_TX, PCIE_RX = 0, 1
UNCORRECTED, SINCE_BOOT = 1, 0
P2P_READ, P2P_OK, P2P_UNKNOWN = 0, 0, 6
BYTES_PER_KB = 1000


class NoNvmlError(Exception):
    """NVML is not usable here; the text says why."""


def no_nvml(why: str | None) -> Nvml:
    """Open nothing: the cards of this machine are not those of the server."""
    raise NoNvmlError(why)


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
        self._events: Any = None
        try:
            library.nvmlInit()
            self.handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
        except library.NVMLError as exc:
            raise NoNvmlError(f"NVML does not answer ({exc})") from exc

    def close(self) -> None:
        if self._events is not None:
            self.ask("nvmlEventSetFree", self._events)
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
            "sm_clock_max_mhz": self.ask("nvmlDeviceGetMaxClockInfo", handle, SM_CLOCK),
            "memory_clock_max_mhz": self.ask("nvmlDeviceGetMaxClockInfo", handle, MEMORY_CLOCK),
            "pcie_width_max": self.ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
        }

    def reading(self, index: int) -> dict[str, Any]:
        """Return what changes all the time of one card: power [W], busy shares 0…1, clock [MHz], throttle reasons."""
        handle = self.handles[index]
        utilization = self.ask("nvmlDeviceGetUtilizationRates", handle)
        reasons = self.ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:
            reasons = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        streaming = getattr(utilization, "memory", None)
        return {
            "index": index,
            "power_w": _watts(self.ask("nvmlDeviceGetPowerUsage", handle)),
            "utilization_ratio": None if utilization is None else utilization.gpu / 100,
            "memory_busy_ratio": None if streaming is None else streaming / 100,
            "sm_clock_mhz": self.ask("nvmlDeviceGetClockInfo", handle, SM_CLOCK),
            "throttle": None if reasons is None else [name for bit, name in THROTTLE_BITS.items() if reasons & bit],
        }

    def slow_reading(self, index: int) -> dict[str, Any]:
        """Return what changes seldom of one card: memory [MiB], memory clock [MHz], heat [°C], link width, lost bits."""
        handle = self.handles[index]
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        return {
            "memory_mib": None if memory is None else memory.used // BYTES_PER_MIB,
            "memory_clock_mhz": self.ask("nvmlDeviceGetClockInfo", handle, MEMORY_CLOCK),
            "temperature_celsius": self.ask("nvmlDeviceGetTemperature", handle, 0),
            "pcie_width": self.ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
            "ecc_errors": self.ask("nvmlDeviceGetTotalEccErrors", handle, UNCORRECTED, SINCE_BOOT),
        }

    def traffic(self, index: int) -> dict[str, Any]:
        """Return PCIe traffic of one card [bytes/s]; the driver counts for 20 ms per direction, so it is asked seldom."""
        sent = self.ask("nvmlDeviceGetPcieThroughput", self.handles[index], PCIE_TX)
        received = self.ask("nvmlDeviceGetPcieThroughput", self.handles[index], PCIE_RX)
        return {
            "pcie_tx_bytes_per_s": None if sent is None else sent * BYTES_PER_KB,
            "pcie_rx_bytes_per_s": None if received is None else received * BYTES_PER_KB,
        }

    def p2p_refused(self) -> list[tuple[int, int]] | None:
        """Return pairs of neighbouring cards between which the driver refuses direct reads; None where it does not tell."""
        found: list[tuple[int, int]] = []
        for index in range(len(self.handles) - 1):
            status = self.ask("nvmlDeviceGetP2PStatus", self.handles[index], self.handles[index + 1], P2P_READ)
            if status is None or status == P2P_UNKNOWN:
                return None
            if status != P2P_OK:
                found.append((index, index + 1))
        return found

    def listen(self) -> list[int]:
        """Ask to be told of Xid errors from now on; return the cards that offer it."""
        self._events = self.ask("nvmlEventSetCreate")
        if self._events is None:
            return []
        # What works returns nothing, and so does what is not offered: the call itself has to be looked at.
        return [index for index, handle in enumerate(self.handles) if self._registers(handle)]

    def xids(self) -> list[tuple[int | None, int]]:
        """Return (card, Xid) of the errors since the last call, the card None where it cannot be told; at most one per card."""
        found: list[tuple[int | None, int]] = []
        for dummy in self.handles if self._events is not None else ():
            event = self.ask("nvmlEventSetWait_v2", self._events, 0)
            if event is None:
                break
            found.append((self._place(event.device), int(event.eventData)))
        return found

    def processes(self) -> dict[int, list[int]] | None:
        """Return card -> ids of compute processes, or None where the driver does not tell."""
        found: dict[int, list[int]] = {}
        for index, handle in enumerate(self.handles):
            running = self.ask("nvmlDeviceGetComputeRunningProcesses", handle)
            if running is None:
                return None
            found[index] = [process.pid for process in running]
        return found

    def _registers(self, handle: Any) -> bool:
        try:
            self._lib.nvmlDeviceRegisterEvents(handle, XID_EVENT, self._events)
        except (self._lib.NVMLError, AttributeError):
            return False
        return True

    def _place(self, handle: Any) -> int | None:
        """Card of a handle out of an event: another object that points to the same place."""
        wanted = _address(handle)
        return next((index for index, known in enumerate(self.handles) if _address(known) == wanted), None)

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


def _address(handle: Any) -> Any:
    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except ctypes.ArgumentError:
        return handle


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _watt_range(milliwatts: Any) -> list[float] | None:
    return None if milliwatts is None else [value / 1000 for value in milliwatts]
