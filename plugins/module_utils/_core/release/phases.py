# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps of a transaction. Each does nothing when its end is reached already, and has a deadline."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from ..units import human_seconds, time_stamp
from . import evidence, proof, services, unit_texts
from .gate_edge import about
from .phase_error import PhaseError
from .spec import ReleaseSpec

if TYPE_CHECKING:
    from .transaction import Transaction

SAY_EVERY_S = 5.0


def start_unit(tx: Transaction, unit: str, spec: ReleaseSpec, *, restarts_allowed: int = 0) -> None:
    """Start a unit and wait until it is ready; raise PhaseError when it fails, crashes or passes its deadline."""
    host, begun = tx.host, tx.host.now()
    deadline = begun + spec.timeouts["start_s"]
    if services.show(host, unit).is_up:
        wait_for_adopted(tx, unit, spec, deadline)
        return
    for address, port in [("127.0.0.1", spec.port), *(("0.0.0.0", each.port) for each in spec.engine_ports)]:
        holder = host.listener(address, port)
        if holder is not None and not tx.store.owns(holder):
            raise PhaseError(f"{unit} is not started: port {port} is taken by {holder}")
    host.systemctl("daemon-reload")
    host.systemctl("reset-failed", unit)
    answer = host.systemctl("start", "--no-block", unit)
    if answer.code != 0:
        raise PhaseError(f"{unit} does not start: {answer.output.strip()}")
    tx.progress.say(f"starting {unit}, at most {human_seconds(spec.timeouts['start_s'])}")
    said, idle = begun, 0
    while True:
        state = services.show(host, unit)
        now = host.now()
        if state.is_up:
            break
        idle = idle + 1 if state.active == "inactive" else 0
        if state.active == "failed" or idle > 5:
            raise PhaseError(f"{unit} failed while starting: {state.why_down()}")
        # Waiting to be started again: systemd still knows why it ended, a second later it does not.
        if state.restarts > restarts_allowed or (state.sub == "auto-restart" and state.restarts == restarts_allowed):
            raise PhaseError(f"{unit} crashed while starting: {state.why_down()}")
        if now >= deadline:
            raise PhaseError(f"{unit} is not ready after {human_seconds(now - begun)}; last {state.text or state.sub}")
        if now - said >= SAY_EVERY_S:
            said = now
            # The text of the unit begins with the time, except in its first second.
            tx.progress.say(f"loading, {state.text or state.sub}", elapsed_s=round(now - begun, 1))
        host.sleep(1)
    wait_for_adopted(tx, unit, spec, deadline)
    if spec.id == tx.spec.id:
        tx.attempt["load_s"] = round(host.now() - begun, 1)
    tx.progress.say(f"ready after {human_seconds(host.now() - begun)}", load_s=round(host.now() - begun, 1))


def ensure_up(tx: Transaction, spec: ReleaseSpec) -> None:
    """Make a promoted release run, in whichever unit it runs already, else in the promoted unit."""
    unit = services.serving_unit(tx.host, spec, committed=True)
    home = spec.run_unit if spec.adopted else unit_texts.promoted_unit(spec.instance)
    if unit is None or spec.adopted:
        start_unit(tx, home, spec, restarts_allowed=3)


def wait_for_adopted(tx: Transaction, unit: str, spec: ReleaseSpec, deadline: float) -> None:
    """Wait until an adopted server lists its model: its unit tells systemd nothing, so it is up from the first moment on."""
    key, _secrets = tx.store.secrets(spec)
    said = tx.host.now()
    while spec.adopted:
        trouble = proof.models_trouble(tx.host.http, spec.base_url, spec.model["served_name"], key)
        trouble = trouble or proof.health_trouble(tx.host.http, spec.base_url, key)
        if trouble is None:
            return
        state = services.show(tx.host, unit)
        if not state.is_up:
            raise PhaseError(f"{unit} failed while starting: {state.why_down()}")
        if tx.host.now() >= deadline:
            raise PhaseError(f"{unit} does not answer before its deadline: {trouble}")
        if tx.host.now() - said >= SAY_EVERY_S:
            said = tx.host.now()
            tx.progress.say(f"loading, {trouble}")
        tx.host.sleep(1)


def stop_release(tx: Transaction, spec: ReleaseSpec) -> None:
    """Stop every unit a release runs in."""
    units = [spec.run_unit]
    if tx.store.committed(spec.id):
        units.append(unit_texts.promoted_unit(spec.instance))
    for unit in units:
        if not services.is_down(tx.host, unit):
            tx.progress.say(f"stopping {unit}")
        _stop(tx, unit, spec.timeouts["stop_s"])
        # Its failure is in the evidence; left in systemd's list it would raise an alarm while the host serves.
        tx.host.systemctl("reset-failed", unit)


def stop_others(tx: Transaction) -> None:
    """Stop what else of this instance runs, such as a candidate that was held: one set of GPUs, one port."""
    for release in tx.host.names(tx.store.folder / "releases"):
        unit = tx.store.run_unit(release)
        if release != tx.spec.id and not services.is_down(tx.host, unit):
            tx.progress.say(f"stopping {unit}, which was left running")
            _stop(tx, unit, tx.spec.timeouts["stop_s"])


def _stop(tx: Transaction, unit: str, timeout_s: float) -> None:
    said = 0.0

    def waits(seconds: float) -> None:
        nonlocal said
        if seconds - said >= SAY_EVERY_S:
            said = seconds
            tx.progress.say(f"{unit} stops for {human_seconds(seconds)}; killed after {human_seconds(timeout_s)}")

    if not services.stop(tx.host, unit, timeout_s, waits):
        raise PhaseError(f"{unit} does not stop, not even by SIGKILL")


def prove_release(tx: Transaction, spec: ReleaseSpec) -> None:
    """Prove a running release; differences are kept with it. Raise PhaseError with each failure."""
    key, _secrets = tx.store.secrets(spec)
    seen = proof.prove(
        tx.host.http,
        spec.base_url,
        served_name=spec.model["served_name"],
        key=key,
        argv=spec.argv,
        expect=spec.expect,
        check=spec.check,
    )
    text = json.dumps(seen.as_dict(), indent=1) + "\n"
    tx.record(functools.partial(tx.host.write, tx.folder / f"proof-{spec.id}.json", text))
    if seen.failures:
        raise PhaseError(*seen.failures)
    tx.progress.say(f"proven: {spec.model['served_name']} generates, settings are as asked ({len(spec.expect)} expectations met)")


def gate(tx: Transaction, round_number: int) -> dict[str, Any]:
    """Run the gate on loopback; keep its verdict in the attempt. Never raises for a bad verdict."""
    spec, host = tx.spec, tx.host
    unit = services.serving_unit(host, spec, committed=tx.store.committed(spec.id))
    if unit is None:
        raise PhaseError("the server is down before the gate")
    before = services.show(host, unit)
    deadline = host.now() + spec.timeouts["gate_s"]
    folder = tx.store.release_folder(spec.id) / "gate" / f"{time_stamp(host.now())}-{round_number}"
    plan = dict(spec.plan)
    if round_number > 1:
        plan["max_seconds_per_point"] = 2 * plan.get("max_seconds_per_point", 180)
    tx.attempt["gate_folder"] = str(folder)
    tx.progress.say(f"gating at {', '.join(str(point.get('concurrency')) for point in plan.get('points', []))} in flight")

    def on_progress(line: dict[str, Any]) -> None:
        numbers = {key: value for key, value in line.items() if key not in ("t", "phase", "text")}
        tx.progress.say(str(line.get("text", "")), **numbers)

    checked = [host.now()]

    def should_stop() -> bool:
        now = host.now()
        if now >= deadline:
            return True
        if now - checked[0] < 2:
            return False
        checked[0] = now
        return services.show(host, unit).pid != before.pid

    context = {**spec.gate_context, "promoted_result": _promoted_result(tx), "about": about(spec)}
    try:
        result = host.gate(
            spec.base_url, plan, folder, key=tx.key, context=context, on_progress=on_progress, should_stop=should_stop
        )
    except OSError as exc:
        raise PhaseError(f"the gate cannot keep its results in {folder}: {exc.strerror or exc}") from exc
    if result.get("unwritten"):
        raise PhaseError(f"the gate cannot keep its results in {folder}: {result['unwritten']}")
    after = services.show(host, unit)
    verdict, reasons = str(result.get("verdict")), list(result.get("reasons") or [])
    if after.pid != before.pid or not after.is_up:
        verdict, reasons = "fail", [f"the server died during the gate: {after.why_down()}", *reasons]
    elif host.now() >= deadline and verdict != "fail":
        late = f"the gate was not through after {human_seconds(spec.timeouts['gate_s'])}, its deadline (timeouts.gate_s)"
        verdict, reasons = "inconclusive", [late, *reasons]
    summary = {
        "verdict": verdict,
        "reasons": reasons,
        "points": result.get("points") or [],
        "correctness": result.get("correctness") or {},
        "diagnosis": result.get("diagnosis") or [],
        "folder": str(folder),
        "t": round(host.now(), 3),
        "plan_sha256": spec.plan_sha256,
        "attempt": tx.attempt["attempt"],
    }
    tx.attempt.update(gate=summary, verdict=verdict, reasons=[] if verdict == "pass" else reasons)
    tx.store.save_attempt(tx.attempt)
    tx.progress.say(f"gate: {verdict}" + (f": {reasons[0]}" if reasons and verdict != "pass" else ""))
    return summary


def take_evidence(tx: Transaction) -> None:
    """Write down what is known of the candidate before it is stopped, once."""
    folder = tx.folder / "evidence"
    unit = tx.spec.run_unit
    state = services.show(tx.host, unit)
    if tx.host.names(folder) or state.active == "inactive":
        return
    since = float(tx.attempt["since"])
    texts = evidence.collect(tx.host, unit, tx.spec.base_url, key=tx.key, secrets=tx.progress.secrets, since=since)
    found = evidence.cause(texts, state)
    if found is not None:
        texts["cause.json"] = json.dumps(found.as_dict(), indent=1) + "\n"
        tx.attempt["log"] = found.as_dict()
    for name, text in texts.items():
        tx.record(functools.partial(tx.host.write, folder / name, text))
    tx.attempt["evidence"] = str(folder)
    tx.progress.say(f"evidence kept in {folder}: {', '.join(tx.host.names(folder)) or 'none'}")


def enable_promoted(tx: Transaction, spec: ReleaseSpec) -> None:
    """Make boot start the promoted release, and the runner that admits it."""
    tx.store.drop_shadow(spec)
    tx.host.systemctl("daemon-reload")
    units = [unit_texts.promoted_unit(spec.instance), unit_texts.runner_unit(spec.instance)]
    # A unit that podman makes is wanted by what its quadlet says; systemctl refuses to enable it.
    answer = tx.host.systemctl("enable", *units[1 if spec.in_container else 0 :])
    if answer.code != 0:
        raise PhaseError(f"{units[0]} cannot be enabled: {answer.output.strip()}")


def restore_promoted(tx: Transaction, back: ReleaseSpec) -> None:
    """Make the promoted unit's text the one of the release gone back to."""
    if not tx.store.committed(back.id):
        tx.store.define_promoted(back, tx.host.read(tx.store.release_folder(back.id) / "unit") or back.unit_text)
    enable_promoted(tx, back)
    if tx.store.pointer("promoted") != back.id:
        tx.store.point("previous", tx.store.before(back.id))
        tx.store.point("promoted", back.id)


def disable_promoted(tx: Transaction) -> None:
    """Leave nothing that a boot would start, where nothing was ever promoted."""
    tx.store.point("promoted", None)
    unit = unit_texts.promoted_unit(tx.spec.instance)
    for container in (False, True):
        path = tx.store.defined_by(unit, container=container)
        if tx.host.read(path) is not None:
            services.stop(tx.host, unit, tx.spec.timeouts["stop_s"])
            if not container:
                tx.host.systemctl("disable", unit)
            tx.host.remove(path)
            tx.host.systemctl("daemon-reload")


def disable_runner(tx: Transaction) -> None:
    tx.host.systemctl("disable", unit_texts.runner_unit(tx.spec.instance))


def _promoted_result(tx: Transaction) -> dict[str, Any] | None:
    """Return the whole gate result of the release that is promoted, for limits relative to it."""
    if tx.back is None:
        return None
    record = tx.store.gate_record(tx.back.id)
    if not record:
        return None
    return {"verdict": record["verdict"], "points": record["points"], "correctness": record.get("correctness") or {}}
