# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One look for drift as a value: findings, what is unknown, and the same as text."""

from __future__ import annotations

from typing import Any

from ..errors import InferopsError
from ..units import human_seconds
from . import drift, drift_facts
from .host import Host
from .store import Store


def look(host: Host, store: Store, *, max_gate_age_s: float = 0.0) -> dict[str, Any]:
    """Return what differs from the promoted release; raise InferopsError where nothing is promoted."""
    promoted = store.pointer("promoted")
    if promoted is None:
        raise InferopsError(
            f"nothing is promoted for instance {store.instance}",
            where=str(store.folder / "promoted"),
            why="there is nothing to hold the host against",
            do="run deploy.yml, or adopt.yml for a server that somebody else wrote",
        )
    spec = store.spec(promoted)
    facts = drift_facts.read(host, store, spec)
    found = drift.findings(spec, facts, max_gate_age_s=max_gate_age_s)
    unknown = drift.unknown(spec, facts)
    head = f"release {promoted}: " + (f"{len(found)} differences" if found else "as promoted")
    if facts.gate_age_s is not None:
        head += f"; its gate passed {human_seconds(facts.gate_age_s)} ago"
    lines = [head, *(one.text() for one in found)]
    if unknown:
        lines.append(f"not looked at: {', '.join(unknown)}")
    return {
        "drift": bool(found),
        "findings": [one.as_dict() for one in found],
        "unknown": unknown,
        "release": promoted,
        "gate_age_s": facts.gate_age_s,
        "text": "\n".join(lines),
    }
