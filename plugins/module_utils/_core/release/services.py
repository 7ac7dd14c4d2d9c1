# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Units as the transaction sees them: which one serves a release, start and stop with deadlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import unit_texts
from .host import Host
from .spec import ReleaseSpec

EXIT_REFUSED = 64
EXIT_SILENT = 65
EXIT_LATE = 66
EXIT_WORDS = {
    EXIT_REFUSED: "SGLang refuses its arguments",
    EXIT_SILENT: "accepts but does not generate",
    EXIT_LATE: "did not get ready in time",
    # podman-run(1), "Exit Status".
    125: "podman cannot make the container (125)",
    126: "podman cannot run the program in the image (126)",
    127: "podman does not find the program in the image (127)",
    # What systemd itself stumbles over before the program runs; systemd.exec(5), "Process Exit Codes".
    200: "systemd cannot enter WorkingDirectory= (200/CHDIR)",
    203: "systemd cannot run the program of ExecStart= (203/EXEC)",
    217: "systemd does not find User= (217/USER)",
    226: "systemd cannot set up the sandbox (226/NAMESPACE)",
    243: "systemd cannot read the file of LoadCredential= (243/CREDENTIALS)",
}
SHOWN = ("ActiveState", "SubState", "Result", "ExecMainStatus", "MainPID", "NRestarts", "StatusText")


@dataclass(frozen=True)
class UnitState:
    active: str
    sub: str
    result: str
    status: int
    pid: int
    restarts: int
    text: str

    @property
    def is_up(self) -> bool:
        return self.active in ("active", "reloading")

    def why_down(self) -> str:
        """Return one clause on why a unit is not up."""
        words = EXIT_WORDS.get(self.status) or f"{self.result}, exit status {self.status}"
        return f"{words} ({self.text})" if self.text else words


def show(host: Host, unit: str) -> UnitState:
    """Return the state of a unit; one that systemd does not know is inactive."""
    answer = host.systemctl("show", "-p", ",".join(SHOWN), unit)
    found = dict(line.split("=", 1) for line in answer.output.splitlines() if "=" in line)

    def number(name: str) -> int:
        value = found.get(name, "0")
        return int(value) if value.isdigit() else 0

    return UnitState(
        active=found.get("ActiveState", "inactive"),
        sub=found.get("SubState", "dead"),
        result=found.get("Result", ""),
        status=number("ExecMainStatus"),
        pid=number("MainPID"),
        restarts=number("NRestarts"),
        text=found.get("StatusText", ""),
    )


def serving_unit(host: Host, spec: ReleaseSpec, *, committed: bool) -> str | None:
    """Return the unit in which a release is up: its own, or after a boot the promoted one, unless that only pulls in its own."""
    units = [spec.run_unit] + ([unit_texts.promoted_unit(spec.instance)] if committed and not spec.adopted else [])
    return next((unit for unit in units if show(host, unit).is_up), None)


def stop(host: Host, unit: str, timeout_s: float, waits: Callable[[float], None] = lambda seconds: None) -> bool:
    """Stop a unit, kill it when the deadline passes; return whether it is down. A unit that is down stays so.

    ``waits`` is called while it takes time, with the seconds so far.
    """
    if is_down(host, unit):
        return True
    begun = host.now()
    host.systemctl("stop", "--no-block", unit)
    while not is_down(host, unit) and host.now() - begun < timeout_s:
        waits(host.now() - begun)
        host.sleep(0.5)
    if not is_down(host, unit):
        host.systemctl("kill", "--signal=KILL", unit)
        for dummy in range(30):
            if is_down(host, unit):
                break
            host.sleep(1)
    return is_down(host, unit)


def is_down(host: Host, unit: str) -> bool:
    return show(host, unit).active in ("inactive", "failed")
