# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start sglang-router from a file: its own command line takes keys as arguments, which every user of the host can read.

Run by the environment of the router, started by sglang-router.service. The file holds fields of RouterArgs by name; one without a
folder is of $CREDENTIALS_DIRECTORY, as is keys.json with api_key and admin_key. Ready, as systemd is told, means that it answers.
Exit status 64: refused arguments, which would be refused again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path

REFUSED = 64
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def read(config: str) -> dict:
    """Return the fields of the file, and the keys among them."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    fields = json.loads(Path(folder or ".", config).read_text(encoding="utf-8"))
    keys = Path(folder, "keys.json") if folder else None
    found = json.loads(keys.read_text(encoding="utf-8")) if keys and keys.exists() else {}
    if found.get("api_key"):
        fields["api_key"] = found["api_key"]
    if found.get("admin_key"):
        fields["control_plane_api_keys"] = [("inferops", "inferops", found["admin_key"], "admin")]
    return fields


def tell_systemd(*states: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect("\0" + address[1:] if address.startswith("@") else address)
        channel.sendall("\n".join(states).encode())


def tell_when_it_answers(host: str, port: int) -> None:
    """Wait in a process of its own for the router's first sign of life: the router never gives the interpreter back.

    That it has workers is another matter.
    """
    router = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork():
        return
    where = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    url = f"http://{where}:{port}/liveness"
    while os.getppid() == router:
        with contextlib.suppress(OSError), OPENER.open(url, timeout=1):
            tell_systemd("READY=1", f"STATUS=answers on {host}:{port}")
            # systemd looks up who spoke; whoever has ended by then was nobody.
            time.sleep(2)
            break
        time.sleep(0.05)
    os._exit(0)


def main(config: str, *, check: bool) -> int:
    fields = read(config)
    from sglang_router.router import Router
    from sglang_router.router_args import RouterArgs

    unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(RouterArgs)})
    if unknown:
        print(f"{', '.join(unknown)}: no field of this router's RouterArgs", file=sys.stderr)
        return REFUSED
    args = RouterArgs(**fields)
    try:
        args._validate_router_args()  # its own name for it: what its command line calls before it starts
        router = Router.from_args(args)
    except Exception as exc:
        print(f"the router refuses its arguments: {type(exc).__name__}: {exc}", file=sys.stderr)
        return REFUSED
    if check:
        return 0
    tell_when_it_answers(fields["host"], fields["port"])
    router.start()
    return 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(words[-1], check="--check" in words[:-1]))
