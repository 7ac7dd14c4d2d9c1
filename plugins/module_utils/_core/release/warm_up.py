# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Before clients are let in: the loads of the plan have run once with the kernels in use, in a gate or else here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InferopsError
from ..gate.plan import LOAD_KEYS
from ..units import time_stamp
from . import kernels, phases
from .spec import ReleaseSpec

if TYPE_CHECKING:
    from .transaction import Transaction

# Any figure is above it: a point ends as soon as it has one.
SURE = {"min_output_tokens_per_s": 1e-6}
# A request that waits for a compiler is no stall.
PATIENCE_S = 1800.0


def warm_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loads of a gate plan without what is measured and asked beside them.

    >>> warm_plan({"points": [{"concurrency": 8, "max_ttft_p99_ms": 9}], "correctness": {"graded": {}}})["points"]
    [{'concurrency': 8, 'min_output_tokens_per_s': 1e-06}]
    """
    kept = {key: value for key, value in plan.items() if key not in ("correctness", "require", "min_seconds_per_point")}
    points = [{**{key: point[key] for key in LOAD_KEYS if key in point}, **SURE} for point in plan.get("points") or ()]
    return {**kept, "points": points, "min_seconds_per_point": 0, "stall_timeout_s": PATIENCE_S}


def remember(tx: Transaction, spec: ReleaseSpec) -> None:
    """Write down that the loads of the plan have run with the kernels in use."""
    found = _in_use(tx, spec)
    if found is not None:
        warm = {**_known(tx, spec), found.cards: found.made}
        tx.record(lambda: tx.host.write(_path(tx, spec), json.dumps(warm, indent=1) + "\n"), needed=False)


def before_admission(tx: Transaction, spec: ReleaseSpec) -> None:
    """Put the loads of the plan on a server whose kernels no gate has compiled: after another driver or an emptied cache.

    It is no second gate: whatever it sees, the server is let in, since it is the promoted one.
    """
    found = _in_use(tx, spec)
    if found is None or _known(tx, spec).get(found.cards) == found.made or not spec.plan.get("points"):
        return
    tx.progress.say(f"no gate of release {spec.id} has run on {found.cards}: its loads run once before clients are let in")
    folder = tx.store.release_folder(spec.id) / "warm" / time_stamp(tx.host.now())
    key, dummy = tx.store.secrets(spec)
    deadline = tx.host.now() + spec.timeouts["gate_s"]
    try:
        tx.host.gate(
            spec.base_url,
            warm_plan(spec.plan),
            folder,
            key=key,
            context=spec.gate_context,
            on_progress=lambda line: tx.progress.say(str(line.get("text", "")).replace("gate  ", "warm-up  ", 1)),
            should_stop=lambda: tx.host.now() >= deadline,
        )
    except (InferopsError, OSError) as exc:
        tx.progress.say(f"the warm-up was not possible: {str(exc).partition(chr(10))[0]}")
    else:
        remember(tx, spec)
    phases.ensure_up(tx, spec)


def _in_use(tx: Transaction, spec: ReleaseSpec) -> kernels.Kernels | None:
    return None if spec.adopted else kernels.in_use(spec.env, spec.instance, tx.host.read)


def _path(tx: Transaction, spec: ReleaseSpec) -> Path:
    return tx.store.release_folder(spec.id) / "warm.json"


def _known(tx: Transaction, spec: ReleaseSpec) -> dict[str, Any]:
    try:
        found = json.loads(tx.host.read(_path(tx, spec)) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
