# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The transaction: forward to a promoted release, or back to the one before. Killed anywhere, it resumes to one of the two.

The commit point is the text of sglang-INSTANCE.service: it is replaced in one step, and boot starts what stands in it. A resumed
attempt whose candidate stands there is finished; any other goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InferopsError
from . import admission, phases, warm_up
from .host import Host
from .phase_error import PhaseError
from .progress import Progress
from .spec import ReleaseSpec
from .store import Store

GATED = ("deploy", "replace")
# A killed runner is started again by systemd; one that dies this often dies of the same cause each time.
MOST_RUNS = 10
RETRY_S = 10.0


class Transaction:
    """One attempt, from what stands in attempt.json."""

    def __init__(self, host: Host, store: Store, attempt: dict[str, Any]) -> None:
        self.host = host
        self.store = store
        self.attempt = attempt
        self.spec = store.spec(attempt["id"])
        promoted = attempt["from"]
        self.back: ReleaseSpec | None = store.spec(promoted) if promoted else None
        self.folder = store.release_folder(attempt["id"]) / "attempts" / attempt["attempt"]
        self.progress = Progress(host, self.folder / "progress.jsonl")
        self.said_unwritten = False
        self.key, secrets = store.secrets(self.spec)
        self.progress.hide(secrets)
        if self.back:
            self.progress.hide(store.secrets(self.back)[1])

    def run(self) -> str:
        """Carry the attempt to its end and return the outcome."""
        first = self.attempt["runs"] == 0
        interrupted = self.attempt["phase"]
        self.attempt["runs"] += 1
        if self.attempt["runs"] > MOST_RUNS:
            return self._end("nothing_serves", f"NOTHING SERVES: given up after {MOST_RUNS} runs", self.attempt["reasons"])
        if not first:
            return self._resume(interrupted)
        try:
            self._save()
            return self._forward()
        except PhaseError as exc:
            return self._back(exc.reasons)
        except (InferopsError, OSError) as exc:
            return self._back([str(exc)])

    def _forward(self) -> str:
        kind = self.attempt["kind"]
        if kind == "gate":
            return self._gate_again()
        if kind == "start":
            return self._start_again()
        self._phase("drain", "drain_s")
        if self.back:
            self.progress.say("closing the front; open answers may end")
            admission.drain(self.host, self.back, self.progress)
        self._phase("stop", "stop_s")
        if self.back:
            phases.stop_release(self, self.back)
        phases.stop_others(self)
        self._phase("start", "start_s")
        phases.start_unit(self, self.spec.run_unit, self.spec)
        self._phase("proof", "proof_s")
        phases.prove_release(self, self.spec)
        if kind in GATED:
            verdict = self._gate()
            if verdict == "inconclusive" and self.attempt["on_inconclusive"] == "hold":
                reasons = self.attempt["reasons"]
                message = f"release {self.spec.id} is up, not admitted: its gate was inconclusive twice"
                return self._end("held", message, reasons)
            if verdict != "pass":
                raise PhaseError(*(self.attempt["reasons"] or [f"the gate's verdict is {verdict}"]))
        return self._promote()

    def _gate(self) -> str:
        """Gate once, and once more and longer when the first is inconclusive; return the verdict."""
        self._phase("gate", "gate_s")
        result = phases.gate(self, 1)
        if result["verdict"] == "inconclusive":
            self.progress.say("inconclusive; gating once more, twice as long")
            self._phase("gate", "gate_s")
            result = phases.gate(self, 2)
        warm_up.remember(self, self.spec)
        return str(result["verdict"])

    def _promote(self) -> str:
        self._phase("promote", "stop_s")
        if not self.store.committed(self.spec.id):
            self.store.define_promoted(self.spec, self.spec.unit_text)
        return self._finish()

    def _finish(self) -> str:
        """Do what follows the commit point; every step may be done already."""
        self._phase("promote", "stop_s")
        release = self.spec.id
        phases.enable_promoted(self, self.spec)
        previous = self._previous_after()
        events = [event for event in self.store.history() if event.get("attempt") == self.attempt["attempt"]]
        if not any(event["event"] == "promoted" for event in events):
            self.store.remember(self._event("promoted", previous=previous))
        self.store.point("previous", previous)
        self.store.point("promoted", release)
        if self.attempt.get("gate"):
            self.store.save_gate_record(release, self.attempt["gate"])
        self._phase("admit", "proof_s")
        phases.ensure_up(self, self.spec)
        warm_up.before_admission(self, self.spec)
        trouble = admission.open_front(self.host, self.spec)
        if trouble:
            return self._end("nothing_serves", f"release {release} is promoted, but {trouble}", [trouble])
        return self._end("promoted", f"release {release} is promoted and admitted", self.attempt["reasons"])

    def _previous_after(self) -> str | None:
        """Return what `previous` names after this promotion; going back restores what it was before."""
        if self.attempt["kind"] == "rollback":
            return self.store.before(self.spec.id)
        found = self.attempt["from"]
        return str(found) if found and found != self.spec.id else None

    def _start_again(self) -> str:
        phases.stop_others(self)
        self._phase("start", "start_s")
        phases.ensure_up(self, self.spec)
        if self.attempt["gate_wanted"]:
            return self._gate_again()
        self._phase("proof", "proof_s")
        phases.prove_release(self, self.spec)
        self._phase("admit", "proof_s")
        return self._admit(f"release {self.spec.id} serves again")

    def _gate_again(self) -> str:
        """Gate the promoted release against a changed plan without touching its process; clients wait outside meanwhile."""
        self._phase("drain", "drain_s")
        self.progress.say("closing the front for the gate; the process keeps running")
        admission.drain(self.host, self.spec, self.progress)
        self._phase("proof", "proof_s")
        phases.prove_release(self, self.spec)
        verdict = self._gate()
        reasons = list(self.attempt["reasons"])
        if verdict == "pass":
            self.store.save_gate_record(self.spec.id, self.attempt["gate"])
            self.store.remember(self._event("gated"))
        self._phase("admit", "proof_s")
        trouble = admission.open_front(self.host, self.spec)
        if trouble:
            return self._end("nothing_serves", trouble, [trouble, *reasons])
        if verdict == "pass":
            return self._end("serving", f"release {self.spec.id} passed the changed plan and serves", reasons)
        self.attempt["failed_in"] = "gate"
        return self._end(
            "gate_failed",
            f"release {self.spec.id} does not pass the changed plan ({verdict}); it serves on, as promoted before",
            reasons,
        )

    def _resume(self, interrupted: str) -> str:
        self.record(lambda: self.store.save_attempt(self.attempt), needed=False)
        rebooted = self.attempt["boot_id"] != self.host.boot_id()
        cause = "the host was rebooted" if rebooted else "the transaction was killed"
        self.progress.phase = interrupted
        if self.attempt["kind"] in ("start", "gate"):
            self.progress.say(f"{cause} in phase {interrupted}; bringing the promoted release into service")
            return self._back([*self.attempt["reasons"], f"{cause} in phase {interrupted}"])
        if self.store.committed(self.spec.id) and not self.attempt.get("going_back"):
            self.progress.say(f"{cause} in phase {interrupted}, after the promotion; finishing it")
            try:
                return self._finish()
            except (PhaseError, InferopsError, OSError) as exc:
                return self._end("nothing_serves", f"release {self.spec.id} is promoted, but does not serve: {exc}", [str(exc)])
        self.progress.say(f"{cause} in phase {interrupted}; going back")
        return self._back([*self.attempt["reasons"], f"{cause} in phase {interrupted}"])

    def _back(self, reasons: list[str]) -> str:
        """Leave the candidate and bring the promoted release into service; what this cannot do is said loudest."""
        failed_in = self.attempt.get("failed_in") or self.attempt["phase"]
        self._save(reasons=reasons, failed_in=failed_in, going_back=True)
        for reason in reasons:
            self.progress.say(f"failed in phase {failed_in}: {reason}")
        own = self.attempt["from"] == self.spec.id
        if not own:
            self._phase("evidence", "proof_s")
            phases.take_evidence(self)
            self._phase("stop_candidate", "stop_s")
            phases.stop_release(self, self.spec)
        if self.back is None:
            phases.disable_promoted(self)
            return self._end("stopped", "no earlier release to go back to; stopped", reasons)
        try:
            self._phase("start_promoted", "start_s", self.back)
            self.progress.say(
                f"going back to release {self.back.id}" if not own else f"bringing release {self.back.id} into service"
            )
            phases.restore_promoted(self, self.back)
            phases.ensure_up(self, self.back)
            self._phase("proof_promoted", "proof_s", self.back)
            phases.prove_release(self, self.back)
            self._phase("admit_promoted", "proof_s", self.back)
            warm_up.before_admission(self, self.back)
            trouble = admission.open_front(self.host, self.back)
            if trouble:
                raise PhaseError(trouble)
        except (PhaseError, InferopsError, OSError) as exc:
            return self._end("nothing_serves", f"NOTHING SERVES: going back to {self.back.id} failed: {exc}", reasons)
        if own:
            outcome = "gate_failed" if self.attempt["kind"] == "gate" or self.attempt["gate_wanted"] else "serving"
            return self._end(outcome, f"release {self.back.id} serves", reasons)
        return self._end("rolled_back", f"went back to release {self.back.id}, which is proven and admitted", reasons)

    def _admit(self, message: str) -> str:
        warm_up.before_admission(self, self.spec)
        trouble = admission.open_front(self.host, self.spec)
        if trouble:
            return self._end("nothing_serves", trouble, [trouble])
        return self._end("serving", message, [])

    def _phase(self, name: str, timeout: str, spec: ReleaseSpec | None = None) -> None:
        seconds = (spec or self.spec).timeouts[timeout]
        self.progress.phase = name
        self._save(phase=name, deadline=self.host.now() + seconds)

    def _save(self, **changes: Any) -> None:
        self.attempt.update(changes)
        self.record(lambda: self.store.save_attempt(self.attempt))

    def record(self, write: Callable[[], None], *, needed: bool = True) -> None:
        """Write a record. On the way back a full disk must not keep the promoted release out of service, so it is noted only."""
        try:
            write()
        except (InferopsError, OSError) as exc:
            if needed and not self.attempt.get("going_back"):
                raise
            if not self.said_unwritten:
                self.progress.aside(f"records are left out from here on: {exc}")
            self.said_unwritten = True

    def _event(self, event: str, **more: Any) -> dict[str, Any]:
        kept = {key: self.attempt.get(key) for key in ("attempt", "kind", "owner", "since", "load_s", "reasons")}
        return {
            "t": round(self.host.now(), 3),
            "event": event,
            "release": self.spec.id,
            "model": self.spec.model["path"],
            "engine": self.spec.engine["version"],
            "verdict": (self.attempt.get("gate") or {}).get("verdict"),
            **kept,
            **more,
        }

    def _end(self, outcome: str, message: str, reasons: list[str]) -> str:
        self.progress.say(message)
        self.attempt.update(outcome=outcome, message=message, reasons=reasons, ended=round(self.host.now(), 3))
        if outcome == "stopped":
            phases.disable_runner(self)
        event = self._event(outcome if outcome != "promoted" else "admitted", message=message)
        self._last_record(lambda: self.store.remember(event))
        self._last_record(lambda: self.store.save_attempt(self.attempt))
        return outcome

    def _last_record(self, write: Callable[[], None]) -> None:
        """Write down how it ended, as soon as that is possible: until then the next run would not know."""
        while True:
            try:
                return write()
            except (InferopsError, OSError) as exc:
                text = str(exc).partition("\n")[0]
                self.progress.aside(f"{self.attempt['message']}; this is recorded as soon as that is possible: {text}")
                self.host.sleep(RETRY_S)
