# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who listens on an address already: SGLang notices a taken port only after it has loaded the model, which may take an hour."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"


@dataclass(frozen=True)
class Listener:
    """A process that listens; ``unit`` is its systemd unit, and all but the address may be unknown."""

    address: str
    pid: int | None = None
    name: str | None = None
    unit: str | None = None

    def __str__(self) -> str:
        who = f"{self.name or 'a process'}, pid {self.pid}" if self.pid else "a process that cannot be seen from here"
        return f"{who}, {self.unit}" if self.unit else who

    def belongs_to(self, instance: str) -> bool:
        """Return whether this is a server or the front of the instance.

        >>> [Listener("::", unit=f"sglang-{x}.service").belongs_to("a") for x in ("a", "a-front", "a-0123456789ab", "a-b", "ab")]
        [True, True, True, False, False]
        """
        name = re.escape(instance)
        return re.fullmatch(rf"sglang-{name}(-front|-[0-9a-f]{{12}})?\.(service|socket)", self.unit or "") is not None


def split_listen(listen: str) -> tuple[str, int]:
    """Return host and port of a listening address as systemd spells it; a port alone means every address.

    >>> split_listen("0.0.0.0:8000"), split_listen("[::1]:80"), split_listen("8000")
    (('0.0.0.0', 8000), ('::1', 80), ('::', 8000))
    """
    host, dummy, port = listen.rpartition(":")
    return host.strip("[]") or "::", int(port)


def find_listener(address: str, port: int, proc: Path = Path("/proc")) -> Listener | None:
    """Return who would be in the way of listening on this address, or None."""
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError:
        wanted = ipaddress.IPv6Address("::")
    for found, inode in _listening(port, proc):
        same = found == wanted or found.is_unspecified or wanted.is_unspecified
        if same:
            return _owner(found, inode, proc)
    return None


def _listening(port: int, proc: Path) -> Iterator[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, str]]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) < 10 or words[3] != LISTEN:
                continue
            host, dummy, hexport = words[1].partition(":")
            if int(hexport, 16) == port:
                yield _address(host), words[9]


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address as the kernel prints it: words in the machine's byte order.

    >>> _address("0100007F"), _address("00000000000000000000000001000000")
    (IPv4Address('127.0.0.1'), IPv6Address('::1'))
    """
    raw = bytes.fromhex(text)
    found = ipaddress.ip_address(b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4)))
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _owner(address: ipaddress.IPv4Address | ipaddress.IPv6Address, inode: str, proc: Path) -> Listener:
    for folder in sorted(path for path in proc.iterdir() if path.name.isdigit()):
        try:
            if not any(str(fd.readlink()) == f"socket:[{inode}]" for fd in (folder / "fd").iterdir()):
                continue
            units = re.findall(r"([^/\n]+\.(?:service|socket|scope))", (folder / "cgroup").read_text())
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        return Listener(str(address), int(folder.name), name, units[-1] if units else None)
    return Listener(str(address))
