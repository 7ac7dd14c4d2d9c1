# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hand a decision to the host: write the release, its units and the attempt, and start the runner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from ..units import time_stamp
from . import admission, forecast, unit_texts
from .decide import Decision, busy, decide, decide_rollback, front_changed, unfinished
from .host import Host, LockHeldError
from .spec import ReleaseSpec
from .store import Store

SHOWN_GATE = ("verdict", "reasons", "points", "diagnosis", "folder", "t")


def submit(
    host: Host,
    store: Store,
    spec: ReleaseSpec | None,
    *,
    replace: bool = False,
    window_s: float = 0.0,
    on_inconclusive: str = "go_back",
    owner: str = "ansible",
    check_mode: bool = False,
    tools: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Decide and, unless in check mode, submit. ``spec`` is None for a rollback, with ``tools`` as they are now.

    Returns the module's result.
    """
    wanted: dict[str, Any] = {
        "replace": replace,
        "window_s": window_s,
        "on_inconclusive": on_inconclusive,
        "owner": owner,
        "tools": tools,
    }
    if check_mode and not host.names(store.folder):
        return _submit(host, store, spec, check_mode=True, **wanted)
    try:
        with host.lock(store.lock_path, owner):
            return _submit(host, store, spec, check_mode=check_mode, **wanted)
    except LockHeldError:
        raise busy(store, store.attempt()) from None


def _submit(
    host: Host,
    store: Store,
    spec: ReleaseSpec | None,
    *,
    replace: bool,
    window_s: float,
    on_inconclusive: str,
    owner: str,
    check_mode: bool,
    tools: Mapping[str, str] | None,
) -> dict[str, Any]:
    last = store.attempt()
    found = unfinished(host, store)
    if found is not None:
        recovered: dict[str, Any] = {
            "changed": True,
            "action": "recover",
            "message": found.message,
            "reasons": [],
            "release": (last or {}).get("id"),
        }
        recovered.update(_followed(store, last or {}), last_attempt=story(last))
        if not check_mode:
            _start_runner(host, store)
        return recovered
    decision = (
        decide_rollback(host, store, window_s=window_s, tools=tools)
        if spec is None
        else decide(host, store, spec, replace=replace, window_s=window_s)
    )
    wanted = decision.spec
    if wanted is None:
        raise InferopsError("the decision names no release", where="release.decide")
    texts = store.texts(wanted) if decision.kind != "none" else {}
    if decision.kind == "none":
        # New tools go live with the next start of these; nothing that runs is touched.
        helpers = (unit_texts.runner_unit(store.instance), *unit_texts.front_texts(wanted))
        texts = {path: text for path, text in store.texts(wanted).items() if path.name in helpers}
    stale = {path: text for path, text in texts.items() if host.read(path) != text}
    result: dict[str, Any] = {
        "changed": decision.kind != "none" or bool(stale),
        "action": decision.kind,
        "release": wanted.id,
        "message": decision.message,
        "reasons": [],
        "diff": _diff(host, store, stale, decision),
        "last_attempt": story(last),
    }
    if decision.figures:
        result["forecast"] = dict(decision.figures)
        result["forecast_text"] = forecast.told(decision.figures, serves=decision.kind in ("replace", "rollback", "gate"))
    record = store.gate_record(wanted.id)
    if record:
        result["gate"] = {key: record.get(key) for key in SHOWN_GATE} | {"age_s": round(host.now() - float(record["t"]))}
        result["report_folder"] = record.get("folder")
    if check_mode or not result["changed"]:
        return result
    if decision.kind != "none" and front_changed(store, wanted):
        admission.close_now(host, wanted)
    for path, text in stale.items():
        host.write(path, text)
    host.systemctl("daemon-reload")
    if decision.kind == "none":
        return result
    begun = _new_attempt(host, store, decision, on_inconclusive, owner)
    store.save_attempt(begun)
    _start_runner(host, store)
    return {**result, **_followed(store, begun), "outcome": "submitted"}


def _new_attempt(host: Host, store: Store, decision: Decision, on_inconclusive: str, owner: str) -> dict[str, Any]:
    spec = decision.spec
    if spec is None:
        raise InferopsError("the decision names no release", where="release.submit")
    now = host.now()
    return {
        "schema": 1,
        "attempt": f"{time_stamp(now)}-{len(store.history()):04d}",
        "id": spec.id,
        "instance": store.instance,
        "kind": decision.kind,
        "from": decision.promoted,
        "gate_wanted": decision.gate_wanted,
        "on_inconclusive": on_inconclusive,
        "phase": "submitted",
        "owner": owner,
        "since": round(now, 3),
        "deadline": now + 60,
        "boot_id": host.boot_id(),
        "runs": 0,
        "reasons": [],
        "outcome": None,
        "forecast": dict(decision.figures),
    }


def _start_runner(host: Host, store: Store) -> None:
    runner = unit_texts.runner_unit(store.instance)
    host.systemctl("enable", runner)
    host.systemctl("reset-failed", runner)
    # restart, not start: a runner that has ended its work but not yet its process would make a start do nothing.
    answer = host.systemctl("restart", "--no-block", runner)
    if answer.code != 0:
        raise InferopsError(
            f"{runner} does not start: {answer.output.strip()}", where=runner, do=f"look at systemctl status {runner}"
        )


def _followed(store: Store, attempt: Mapping[str, Any]) -> dict[str, Any]:
    folder = store.release_folder(str(attempt.get("id"))) / "attempts" / str(attempt.get("attempt"))
    return {
        "attempt": attempt.get("attempt"),
        "attempt_file": str(store.folder / "attempt.json"),
        "progress_file": str(folder / "progress.jsonl"),
    }


def story(attempt: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return how an attempt went, for the next run to tell."""
    if attempt is None:
        return None
    keys = (
        "attempt",
        "id",
        "kind",
        "owner",
        "since",
        "ended",
        "outcome",
        "failed_in",
        "reasons",
        "message",
        "verdict",
        "gate_folder",
    )
    return {key: attempt.get(key) for key in keys}


def _diff(host: Host, store: Store, stale: Mapping[Path, str], decision: Decision) -> list[dict[str, str]]:
    out = [
        {"before_header": str(path), "after_header": str(path), "before": host.read(path) or "", "after": text}
        for path, text in sorted(stale.items())
        if path.name not in ("release.json", "check.json")
    ]
    spec = decision.spec
    if spec is not None and decision.promoted not in (None, spec.id):
        before = store.spec(str(decision.promoted))
        out.append(
            {
                "before_header": f"argv of {before.id}",
                "after_header": f"argv of {spec.id}",
                "before": "\n".join(before.argv) + "\n",
                "after": "\n".join(spec.argv) + "\n",
            }
        )
    return out
