# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Subcommands of the release area: the programs that units start, and a read-only look at an instance."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from . import front, info, serve, unit_texts
from .host import LockHeldError
from .host_real import RealHost
from .runner import FINISHED_WELL, carry_on
from .store import STATE_DIR, UNIT_DIR, Store

EXIT_LOCKED = 75
LOCK_TRIES = 40


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
    transact = commands.add_parser("transact", help="carry the submitted attempt of an instance to its end (started by its unit)")
    _places(transact)
    transact.set_defaults(run=run_transact)

    status = commands.add_parser("status", help="show what is promoted, what serves, and the last attempt")
    _places(status)
    status.add_argument("--format", choices=("text", "json"), default="text")
    status.set_defaults(run=run_status)

    relay = commands.add_parser("front", help="relay the passed socket to the engine (started by its socket unit)")
    relay.add_argument("--to", required=True, metavar="HOST:PORT")
    relay.set_defaults(run=lambda namespace: front.main(namespace.to))

    serve.add_arguments(commands.add_parser("serve", help="start the engine and tell systemd when it really generates"))


def run_transact(namespace: argparse.Namespace) -> int:
    """Resume or run the attempt; without one, admit the promoted release after a boot."""
    host = RealHost()
    store = Store(host, namespace.instance, namespace.state_dir, namespace.unit_dir)
    try:
        with _patient_lock(host, store):
            submitted = not (store.attempt() or {"outcome": "none"}).get("outcome")
            outcome = carry_on(host, store, say)
    except LockHeldError as exc:
        say(f"locked by {exc}")
        return EXIT_LOCKED
    if outcome == "nothing_serves":
        return unit_texts.NOTHING_SERVES
    return unit_texts.WENT_BACK if submitted and outcome not in FINISHED_WELL else 0


@contextlib.contextmanager
def _patient_lock(host: RealHost, store: Store) -> Iterator[None]:
    """Hold the lock; whoever submits holds it for a moment longer than it takes this process to start."""
    with contextlib.ExitStack() as stack:
        for attempt in range(LOCK_TRIES):
            try:
                stack.enter_context(host.lock(store.lock_path, f"runner, pid {os.getpid()}"))
                break
            except LockHeldError:
                if attempt == LOCK_TRIES - 1:
                    raise
                host.sleep(0.25)
        yield


def run_status(namespace: argparse.Namespace) -> int:
    host = RealHost()
    state = info.describe(host, Store(host, namespace.instance, namespace.state_dir, namespace.unit_dir))
    print(json.dumps(state, indent=1) if namespace.format == "json" else info.text(state))
    return 0 if state["serving_unit"] else 1


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instance", required=True)
    parser.add_argument("--state-dir", default=STATE_DIR)
    parser.add_argument("--unit-dir", default=UNIT_DIR)
