"""A host in memory: files, units, clock, an engine that answers. It can crash before or after any effect, and reboot."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.host import Answer, LockHeldError, Ran
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.ports import Listener
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.systemd import setting, split

INSTANCE = "kimi"
SECRET = "sk-very-secret-1"


class Crash(BaseException):
    """The runner was killed here."""


class SimulatedHost:
    """See Host. ``broken`` holds argv words whose engine never gets ready; ``verdicts`` what gates answer, in turn."""

    def __init__(self) -> None:
        self.clock = 1_000_000.0
        self.files: dict[str, str] = {}
        self.boots = 1
        self.active: dict[str, str] = {}
        self.started: dict[str, float] = {}
        self.pids: dict[str, int] = {}
        self.enabled: set[str] = set()
        self.next_pid = 100
        self.broken: dict[str, str] = {}
        self.misresolved: dict[str, Any] = {}
        self.verdicts: list[str] = []
        self.gates = 0
        self.effects = 0
        self.crash_at: int | None = None
        self.crash_after = False
        self.locked_by: str | None = None
        self.load_s = 30.0
        self.gate_takes_s = 60
        self.foreign: dict[int, Listener] = {}
        self.front_opened_by_gate = False
        self.free = 1 << 40
        self.full_from_gate = False
        self.unwritten: str | None = None
        self.hung: set[str] = set()
        self.fails_when_stopped: set[str] = set()
        self.journal = ""
        self.disk_full_until: float | None = None

    # edges that only look
    def now(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    def read(self, path: Path) -> str | None:
        return self.files.get(str(path))

    def names(self, folder: Path) -> list[str]:
        prefix = f"{folder}/"
        return sorted({name[len(prefix) :].split("/")[0] for name in self.files if name.startswith(prefix)})

    def run(self, words: list[str], timeout_s: float) -> Ran:
        if self.journal and words[:2] == ["journalctl", "--unit"]:
            return Ran(0, self.journal)
        return Ran(0, f"output of {words[0]} api_key='{SECRET}' with {SECRET}")

    @contextlib.contextmanager
    def lock(self, path: Path, owner: str) -> Iterator[None]:
        if self.locked_by is not None:
            raise LockHeldError(self.locked_by)
        self.locked_by = owner
        try:
            yield
        finally:
            self.locked_by = None

    # edges with an effect: each may be the last thing a killed runner did, or the first it did not
    @contextlib.contextmanager
    def effect(self) -> Iterator[None]:
        self.effects += 1
        if self.crash_at == self.effects and not self.crash_after:
            raise Crash
        yield
        if self.crash_at == self.effects and self.crash_after:
            raise Crash

    def free_bytes(self, folder: Path) -> int:
        return self.free

    def room(self, path: Path) -> None:
        """Fail as a full disk does, where the records are."""
        if self.disk_full_until is not None and self.clock < self.disk_full_until and "/var/lib/" in str(path):
            raise InferopsError(f"{path} cannot be written: No space left on device", where=str(path))

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        self.room(path)
        with self.effect():
            self.files[str(path)] = text

    def append(self, path: Path, line: str) -> None:
        self.room(path)
        with self.effect():
            self.files[str(path)] = self.files.get(str(path), "") + line + "\n"

    def remove(self, path: Path) -> None:
        with self.effect():
            self.files.pop(str(path), None)

    def systemctl(self, *words: str, timeout_s: float = 30.0) -> Ran:
        verb, *rest = words
        units = [word for word in rest if word.endswith((".service", ".socket"))]
        if verb == "cat":
            return Ran(0, self.text_of(units[0]))
        if verb == "show":
            return Ran(0, self.shown(units[0]))
        with self.effect():
            for unit in units:
                known = unit in self.active or self.text_of(unit)
                if not known and verb in ("start", "restart", "enable"):
                    return Ran(5, f"Unit {unit} not found.")
                if verb == "enable" and f"/etc/systemd/system/{unit}" not in self.files:
                    return Ran(1, f"Failed to enable unit: Unit {unit} is transient or generated")
                getattr(self, "do_" + verb.replace("-", "_"))(unit)
        return Ran(0, "")

    def listener(self, address: str, port: int) -> Listener | None:
        return self.foreign.get(port)

    # systemd
    def text_of(self, unit: str) -> str:
        """Return what defines a unit; a generated one gives way to one of the same name in /etc."""
        quadlet = f"/etc/containers/systemd/{unit.removesuffix('.service')}.container"
        return self.files.get(f"/etc/systemd/system/{unit}") or self.files.get(quadlet) or ""

    def do_start(self, unit: str) -> None:
        if self.state(unit) in ("active", "activating"):
            return
        text = self.text_of(unit)
        for other in " ".join(setting(text, "Wants")).split():
            self.do_start(other)
        for other in " ".join(setting(text, "Conflicts")).split():
            self.do_stop(other)
        for other in list(self.active):
            if unit in " ".join(setting(self.text_of(other), "Conflicts")).split():
                self.do_stop(other)
        self.active[unit] = (
            "active" if unit.endswith(".socket") or "release@" in unit or "notify" not in text.lower() else "activating"
        )
        self.started[unit] = self.clock
        self.next_pid += 1
        self.pids[unit] = self.next_pid

    do_restart = do_start

    def do_stop(self, unit: str) -> None:
        if unit in self.hung and self.active.get(unit) not in (None, "failed"):
            self.active[unit] = "deactivating"
            return
        if self.active.get(unit) != "failed":
            self.active.pop(unit, None)
        if unit in self.fails_when_stopped:
            self.active[unit] = "failed"

    def do_kill(self, unit: str) -> None:
        self.active.pop(unit, None)

    def do_enable(self, unit: str) -> None:
        self.enabled.add(unit)

    def do_disable(self, unit: str) -> None:
        self.enabled.discard(unit)

    def do_reset_failed(self, unit: str) -> None:
        if self.active.get(unit) == "failed":
            del self.active[unit]

    def do_daemon_reload(self, unit: str) -> None: ...

    def state(self, unit: str) -> str:
        if self.active.get(unit) == "activating" and self.clock - self.started[unit] >= self.load_s:
            self.active[unit] = (
                "failed"
                if self.fault(unit) == "crash"
                else "activating"
                if self.fault(unit) in ("hang", "restarting")
                else "active"
            )
        return self.active.get(unit, "inactive")

    def fault(self, unit: str) -> str | None:
        text = self.text_of(unit)
        return next((fault for word, fault in self.broken.items() if word in text), None)

    def shown(self, unit: str) -> str:
        state = self.state(unit)
        if state == "activating" and self.fault(unit) == "restarting":
            # Dies after load_s and is started again ten seconds later: until then systemd tells why, afterwards it does not.
            age = self.clock - self.started[unit]
            if self.load_s <= age:
                waits = age < self.load_s + 10
                status, text, sub = (137, "the engine ended: out of memory", "auto-restart") if waits else (0, "", "start")
                shown = f"ActiveState=activating\nSubState={sub}\nResult={'exit-code' if waits else 'success'}\n"
                return f"{shown}ExecMainStatus={status}\nMainPID=0\nNRestarts={0 if waits else 1}\nStatusText={text}\n"
        pid = self.pids.get(unit, 0) if state in ("active", "activating") else 0
        known = f"LoadState=loaded\nFragmentPath=/etc/systemd/system/{unit}\n" if self.text_of(unit) else "LoadState=not-found\n"
        drop_ins = [name for name in self.files if f"/{unit}.d/" in name or "/service.d/" in name]
        known += f"DropInPaths={' '.join(drop_ins)}\n"
        known += f"UnitFileState={'enabled' if unit in self.enabled else 'disabled'}\n"
        code = 1 if state == "failed" else 0
        shown = f"ActiveState={state}\nSubState=x\nResult=exit-code\nExecMainStatus={code}\n"
        return f"{known}{shown}MainPID={pid}\nNRestarts=0\nStatusText=loading\n"

    def serving(self) -> list[str]:
        """Return the engine units that are up."""
        return [
            unit
            for unit in list(self.active)
            if re.match(r"sglang-(?!.*front)", unit) and self.state(unit) == "active" and "oneshot" not in self.text_of(unit)
        ]

    def argv_of(self, unit: str) -> list[str]:
        text = self.text_of(unit)
        return split((setting(text, "ExecStart") or setting(text, "Exec"))[0])

    def is_open(self) -> bool:
        return self.active.get(f"sglang-{INSTANCE}-front.socket") == "active"

    def reboot(self) -> None:
        """Power off and on: what is enabled starts, the runner apart, which the test starts itself."""
        self.boots += 1
        self.active.clear()
        quadlets = {
            name.rpartition("/")[2].replace(".container", ".service") for name in self.files if name.endswith(".container")
        }
        generated = {unit for unit in quadlets if setting(self.text_of(unit), "WantedBy")}
        for unit in sorted(self.enabled | generated):
            if self.text_of(unit) and "release@" not in unit:
                self.do_start(unit)

    # engine
    def http(self, url: str, *, key: str | None, body: Any, timeout_s: float) -> Answer:
        up = self.serving()
        if len(up) != 1:
            return Answer(None, "Connection refused")
        argv = self.argv_of(up[0])
        if self.clock - self.started.get(up[0], 0) < self.load_s:
            return Answer(None, "Connection refused")
        if url.endswith("/v1/models"):
            return Answer(200, json.dumps({"data": [{"id": "kimi-k2.6"}]}))
        if url.endswith("/server_info"):
            depth = int(argv[argv.index("--pp-async-batch-depth") + 1])
            backend = "disabled" if "--disable-cuda-graph" in argv else "full"
            info = {"pp_async_batch_depth": depth, "api_key": SECRET, "launch_command": argv}
            info["cuda_graph_config"] = {"decode": {"backend": backend}}
            return Answer(200, json.dumps(info | self.misresolved))
        if url.endswith("/metrics"):
            return Answer(200, 'sglang:num_running_reqs{pp_rank="0"} 0.0\nsglang:num_queue_reqs{pp_rank="0"} 0.0\n')
        message = {"content": None, "reasoning_content": "one two"}
        return Answer(200, json.dumps({"choices": [{"message": message}], "usage": {"completion_tokens": 8}}))

    def gate(
        self, base_url: str, plan: Any, folder: Path, *, key: Any, context: Any, on_progress: Any, should_stop: Any
    ) -> dict[str, Any]:
        with self.effect():
            self.gates += 1
            self.front_opened_by_gate |= self.is_open()
            on_progress({"text": f"gate {self.gates} with {key}"})
            self.clock += self.gate_takes_s
            if self.full_from_gate:
                self.disk_full_until = self.clock + 3600
                raise OSError(28, "No space left on device")
            verdict = self.verdicts.pop(0) if self.verdicts else "pass"
            self.files[f"{folder}/result.json"] = json.dumps({"verdict": verdict})
            reasons = [] if verdict == "pass" else [f"the figures say {verdict}"]
            return {"verdict": verdict, "reasons": reasons, "points": [], "diagnosis": [], "unwritten": self.unwritten}
