# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of an instance in one value: what is promoted, what serves, what the last attempt did."""

from __future__ import annotations

from typing import Any

from ..observe.figures import figures
from . import admission, services, unit_texts
from .host import Host
from .store import Store
from .submit import story

HISTORY = 20


def describe(host: Host, store: Store) -> dict[str, Any]:
    """Return the records and what systemd says; touches nothing."""
    promoted = store.pointer("promoted")
    attempt = store.attempt()
    record = store.gate_record(promoted) if promoted else None
    unit = admitted = None
    if promoted:
        spec = store.spec(promoted)
        unit = services.serving_unit(host, spec, committed=store.committed(promoted))
        admitted = admission.is_open(host, spec) if unit else False
    return {
        "instance": store.instance,
        "promoted": promoted,
        "previous": store.pointer("previous"),
        "serving_unit": unit,
        "main_pid": services.show(host, unit).pid if unit else None,
        "admitted": admitted,
        "releases": host.names(store.folder / "releases"),
        "gate": {**record, "age_s": round(host.now() - float(record["t"]))} if record else None,
        "figures": figures(host, record),
        "history": store.history()[-HISTORY:],
        "attempt": story(attempt),
        "attempt_running": bool(attempt) and not (attempt or {}).get("outcome"),
        "phase": (attempt or {}).get("phase"),
        "runner": services.show(host, unit_texts.runner_unit(store.instance)).active,
    }


def text(state: dict[str, Any]) -> str:
    """Return the state as a few lines for a person."""
    lines = [f"instance   {state['instance']}"]
    if state["promoted"]:
        where = f"{state['serving_unit']}, pid {state['main_pid']}" if state["serving_unit"] else "NOT RUNNING"
        lines.append(f"promoted   {state['promoted']}  ({where}; clients {'admitted' if state['admitted'] else 'not admitted'})")
    else:
        lines.append("promoted   nothing")
    lines.append(f"previous   {state['previous'] or 'nothing'}")
    attempt = state["attempt"]
    if attempt:
        ended = f"{attempt['outcome']}: {attempt['message']}" if attempt["outcome"] else f"under way, phase {state['phase']}"
        lines.append(f"attempt    {attempt['attempt']} ({attempt['kind']} of {attempt['id']} by {attempt['owner']}): {ended}")
        lines += [f"           {reason}" for reason in attempt["reasons"] or []]
    return "\n".join(lines)
