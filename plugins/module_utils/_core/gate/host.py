# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The machine on which the load client runs: processors and network, as shares of what it has; unreadable is absent."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

BITS_PER_MBIT = 1_000_000
LOOPBACK = "lo"
# Processors are counted in hundredths of a second: below this, shares would be noise.
LEAST_S = 0.1


def own_cpu_s() -> dict[str, float]:
    return {"client": time.process_time()}


class HostWatch:
    """Each call of ``read`` tells about the time since the one before."""

    def __init__(
        self,
        interface: str | None,
        *,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        clock: Callable[[], float] = time.monotonic,
        cpu_clocks: Callable[[], Mapping[str, float]] = own_cpu_s,
    ) -> None:
        self._interface, self._proc, self._sys = interface, proc, sys
        self._clock, self._cpu_clocks = clock, cpu_clocks
        self._link_bytes_per_s = self._speed()
        self._last: dict[str, Any] = self._now()

    def read(self) -> dict[str, float | None]:
        """Return busy shares of all processors, of the busiest one, of one by the client's busiest process, and of the link."""
        last, now = self._last, self._now()
        elapsed = now["s"] - last["s"]
        if elapsed < LEAST_S:
            return {}
        self._last = now
        cores = {
            name: (busy - last["cores"][name][0]) / (whole - last["cores"][name][1])
            for name, (busy, whole) in now["cores"].items()
            if name in last["cores"] and whole > last["cores"][name][1]
        }
        each = [share for name, share in cores.items() if name != "cpu"]
        used = [now["cpu_s"][name] - since for name, since in last["cpu_s"].items() if name in now["cpu_s"]]
        sent, received = (_rate(last["bytes"], now["bytes"], place, elapsed) for place in (1, 0))
        link = None
        if sent is not None and received is not None and self._link_bytes_per_s is not None:
            link = max(sent, received) / self._link_bytes_per_s
        resent = None if None in (last["resent"], now["resent"]) else (now["resent"] - last["resent"]) / elapsed
        return {
            "cpu_ratio": _rounded(cores.get("cpu")),
            "busiest_core_ratio": _rounded(max(each)) if each else None,
            "client_cpu_ratio": _rounded(max(used) / elapsed) if used else None,
            "sent_bytes_per_s": _rounded(sent),
            "received_bytes_per_s": _rounded(received),
            "link_ratio": _rounded(link),
            "resent_segments_per_s": _rounded(resent),
        }

    def _now(self) -> dict[str, Any]:
        return {
            "s": self._clock(),
            "cpu_s": dict(self._cpu_clocks()),
            "cores": self._cores(),
            "bytes": self._bytes(),
            "resent": self._resent(),
        }

    def _cores(self) -> dict[str, tuple[int, int]]:
        """(busy, all) ticks by processor, ``cpu`` for all together: user nice system idle iowait irq softirq steal."""
        found = {}
        for line in _lines(self._proc / "stat"):
            name, *fields = line.split()
            if name.startswith("cpu") and len(fields) >= 8:
                ticks = [int(field) for field in fields[:8]]
                found[name] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
        return found

    def _bytes(self) -> tuple[int, int] | None:
        """(received, sent) of the interface towards the server since boot."""
        for line in _lines(self._proc / "net" / "dev"):
            name, colon, rest = line.partition(":")
            fields = rest.split()
            if colon and name.strip() == self._interface and len(fields) > 8:
                return int(fields[0]), int(fields[8])
        return None

    def _resent(self) -> int | None:
        """TCP segments that this machine had to send again since boot."""
        names: list[str] | None = None
        for line in _lines(self._proc / "net" / "snmp"):
            if not line.startswith("Tcp:"):
                continue
            if names is None:
                names = line.split()
            elif "RetransSegs" in names:
                return int(line.split()[names.index("RetransSegs")])
        return None

    def _speed(self) -> float | None:
        """What the link carries [bytes/s]; a bridge, a tunnel and the loopback do not say."""
        text = "".join(_lines(self._sys / "class" / "net" / (self._interface or "-") / "speed")).strip()
        return int(text) * BITS_PER_MBIT / 8 if text.isdigit() and int(text) > 0 else None


def interface_to(base_url: str, *, proc: Path = Path("/proc")) -> str | None:
    """Return the network interface over which a server is reached, None where that cannot be told."""
    parts = urlsplit(base_url)
    try:
        address = socket.getaddrinfo(parts.hostname, parts.port or 80, family=socket.AF_INET, type=socket.SOCK_DGRAM)[0][4]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # Sends nothing: the kernel only chooses the way.
            own = probe.getsockname()[0]
    except (OSError, IndexError):
        return None
    if own.startswith("127.") or own == address[0]:
        return LOOPBACK
    target = int.from_bytes(socket.inet_aton(str(address[0])), "little")
    best: tuple[int, str] | None = None
    for line in _lines(proc / "net" / "route")[1:]:
        fields = line.split()
        name, network, mask = fields[0], fields[1], fields[7]
        if target & int(mask, 16) == int(network, 16) and (best is None or int(mask, 16) > best[0]):
            best = (int(mask, 16), name)
    return None if best is None else best[1]


def elsewhere(base_url: str, *, here: bool | None, interface: str | None) -> str | None:
    """Return why the client's machine is not the server's, None where it is or where that cannot be told.

    ``interface`` is the way to it, ``here`` what somebody said about it.
    """
    if here is not None:
        return None if here else f"the server at {base_url} runs on another machine than the load client"
    if interface is None or interface == LOOPBACK:
        return None
    return (
        f"the server at {base_url} is reached over {interface}, so it is taken to run on another machine "
        "(context server_here: true says that it does not)"
    )


def _rate(last: tuple[int, int] | None, now: tuple[int, int] | None, place: int, elapsed: float) -> float | None:
    return None if last is None or now is None else (now[place] - last[place]) / elapsed


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
