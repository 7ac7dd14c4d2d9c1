# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""inferops enrol: the program of the unit that keeps a promoted server in the lists of its routers."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ..release.notify import Notifier
from ..release.redact import read_secrets
from .api import RouterApi
from .enrol import Enrolment, keep


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    enrol = commands.add_parser("enrol", help="keep a server in the lists of its routers until stopped (started by its unit)")
    enrol.add_argument("--worker", required=True, metavar="URL", help="the server as the routers reach it")
    enrol.add_argument("--router", required=True, action="append", dest="routers", metavar="URL")
    enrol.add_argument("--key-credential", metavar="NAME", help="credential with the key of those who may change the workers")
    enrol.add_argument("--config-credential", metavar="NAME", help="credential with the server's own key, as it gets it")
    enrol.set_defaults(run=run_enrol)


def run_enrol(namespace: argparse.Namespace) -> int:
    key = credential(namespace.key_credential)
    config = read_secrets(credential(namespace.config_credential))
    routers = tuple(RouterApi(url.rstrip("/"), key.strip() if key else None) for url in namespace.routers)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *dummy: stop.set())
    enrolment = Enrolment(routers, namespace.worker.rstrip("/"), config.get("api_key"), say)
    keep(enrolment, Notifier(os.environ), stop.wait)
    return 0


def credential(name: str | None) -> str | None:
    """Return what systemd hands over under this name."""
    if name is None:
        return None
    return Path(os.environ["CREDENTIALS_DIRECTORY"], name).read_text(encoding="utf-8")


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
