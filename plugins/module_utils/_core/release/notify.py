# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sd_notify protocol: datagrams to the socket that systemd names in NOTIFY_SOCKET (sd_notify(3)).

In a container NOTIFY_SOCKET is the runtime's: it waits there for READY=1 and passes on nothing else (crun 1.21, runc 1.1). So
the quadlet also mounts the socket of systemd itself and names it in INFEROPS_NOTIFY_SOCKET; both are told.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping


class Notifier:
    """Sends states to systemd; without NOTIFY_SOCKET it says nothing, so the same program runs by hand."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        named = (environ.get(name, "") for name in ("INFEROPS_NOTIFY_SOCKET", "NOTIFY_SOCKET"))
        self.addresses = ["\0" + address[1:] if address.startswith("@") else address for address in named if address]

    def send(self, *states: str) -> None:
        """Send states such as ``READY=1`` in one datagram; a systemd that does not listen is no reason to stop serving."""
        for address in self.addresses:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.connect(address)
                channel.sendall("\n".join(states).encode())

    def status(self, text: str) -> None:
        """Set the line that ``systemctl status`` shows."""
        self.send(f"STATUS={text}")

    def ready(self, text: str) -> None:
        self.send("READY=1", f"STATUS={text}")

    def stopping(self, text: str) -> None:
        self.send("STOPPING=1", f"STATUS={text}")

    def extend(self, seconds: float) -> None:
        """Ask for this many seconds more from now on before the start times out."""
        self.send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")
