# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for the pynvml module: two cards whose state a test can set; unknown calls fail like the real ones."""

from __future__ import annotations

from types import SimpleNamespace


class NVMLError(Exception):
    """As pynvml raises it."""


class FakePynvml:
    NVMLError = NVMLError

    def __init__(self, count: int = 2, *, reasons: int = 0, broken: bool = False) -> None:
        self.count, self.reasons, self.broken = count, reasons, broken
        self.pids = [[100]] * count
        self.names = ["Card"] * count
        self.xids: list[tuple[int, int]] = []
        self.calls: dict[str, int] = {}
        self.p2p = 0
        self.busy = [0] * count

    def nvmlInit(self):
        if self.broken:
            raise NVMLError("Driver Not Loaded")

    def nvmlShutdown(self):
        return None

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlSystemGetCudaDriverVersion(self):
        return 13000

    def nvmlSystemGetDriverVersion(self):
        return b"580.95.05"

    def nvmlDeviceGetCudaComputeCapability(self, _):
        return (12, 0)

    def nvmlDeviceGetName(self, index):
        return self.names[index]

    def nvmlDeviceGetUUID(self, index):
        return f"GPU-{index}"

    def nvmlDeviceGetMemoryInfo(self, _):
        return SimpleNamespace(total=97887 << 20, used=80000 << 20)

    def nvmlDeviceGetPowerManagementLimit(self, _):
        return 600000

    def nvmlDeviceGetPowerUsage(self, _):
        return 85000

    def nvmlDeviceGetUtilizationRates(self, index):
        return SimpleNamespace(gpu=self.busy[index], memory=0)

    def nvmlDeviceGetPcieThroughput(self, index, counter):
        self.calls["pcie"] = self.calls.get("pcie", 0) + 1
        return 1000 * (index + 1) + counter

    def nvmlDeviceGetP2PStatus(self, _card, _other, _what):
        return self.p2p

    def nvmlEventSetCreate(self):
        return "events"

    def nvmlDeviceRegisterEvents(self, index, kinds, _events):
        assert kinds == 8 and index < self.count

    def nvmlEventSetWait_v2(self, _events, _timeout):
        if not self.xids:
            raise NVMLError("Timeout")
        card, xid = self.xids.pop(0)
        return SimpleNamespace(device=card, eventType=8, eventData=xid)

    def nvmlEventSetFree(self, _events):
        return None

    def nvmlDeviceGetCurrentClocksEventReasons(self, _):
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, index):
        return [SimpleNamespace(pid=pid) for pid in self.pids[index]]
