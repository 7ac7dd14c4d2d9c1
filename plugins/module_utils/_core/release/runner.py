# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the runner's unit is started for: to finish an attempt, or after a boot to admit what is promoted."""

from __future__ import annotations

from collections.abc import Callable

from . import admission, phases, warm_up
from .host import Host
from .phase_error import PhaseError
from .store import Store
from .transaction import Transaction

FINISHED_WELL = ("promoted", "serving")


def carry_on(host: Host, store: Store, say: Callable[[str], None]) -> str:
    """Do what the runner is started for: finish an attempt, or after a boot admit what is promoted. Returns the outcome."""
    attempt = store.attempt()
    if attempt is not None and not attempt.get("outcome"):
        outcome = Transaction(host, store, attempt).run()
        say(f"{outcome}: {attempt.get('message', '')}")
        return outcome
    try:
        say(ensure_admitted(host, store, say))
    except PhaseError as exc:
        say(f"NOTHING SERVES: {exc}")
        return "nothing_serves"
    return "serving"


def ensure_admitted(host: Host, store: Store, say: Callable[[str], None]) -> str:
    """After a boot, without an attempt to finish: wait for the promoted release, prove it, admit clients."""
    promoted = store.pointer("promoted")
    if promoted is None:
        return "nothing promoted"
    spec = store.spec(promoted)
    if spec.front["kind"] != "none" and admission.is_open(host, spec):
        return "already admitted"
    stand_in = {
        "attempt": "boot",
        "id": promoted,
        "from": promoted,
        "kind": "boot",
        "phase": "boot",
        "runs": 1,
        "reasons": [],
        "gate_wanted": False,
    }
    boot = Transaction(host, store, stand_in)
    say(f"waiting for release {promoted}")
    phases.ensure_up(boot, spec)
    phases.prove_release(boot, spec)
    warm_up.before_admission(boot, spec)
    trouble = admission.open_front(host, spec)
    if trouble:
        raise PhaseError(trouble)
    store.remember({"t": round(host.now(), 3), "event": "boot", "release": promoted, "boot_id": host.boot_id()})
    return f"release {promoted} is proven and admitted"
