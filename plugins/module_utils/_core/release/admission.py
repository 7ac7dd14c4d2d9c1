# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may reach the engine: the front is closed first on drain and opened last after a proof."""

from __future__ import annotations

import re

from . import services, unit_texts
from .host import Host, Ran
from .progress import Progress
from .spec import ReleaseSpec

# How long a promotion waits for a router to list the server; its health is asked for within seconds.
ENROL_S = 60.0
# A router that chose the server just before it left the list connects within this time.
SETTLE_S = 1.0

# Gauges of srt/observability (0.5.23) and srt/metrics/collector.py (0.5.12); the largest over ranks, since a sum may count twice.
IN_FLIGHT = re.compile(r"^sglang:(num_running_reqs|num_queue_reqs)(?:\{[^}]*\})?\s+([0-9.eE+-]+)$", re.MULTILINE)


def is_open(host: Host, spec: ReleaseSpec) -> bool:
    """Return whether clients are admitted; without a front of ours that is not our business and counts as open."""
    if spec.front["kind"] == "none":
        return True
    units = [unit_texts.front_socket(spec.instance)]
    if spec.front["kind"] == "router":
        units.append(unit_texts.front_enrolment(spec.instance))
    return all(services.show(host, unit).is_up for unit in units)


def listens(host: Host, socket_text: str | None, spec: ReleaseSpec) -> bool:
    """Return whether our own socket holds the listening address already, whatever else of the front is open."""
    up = services.show(host, unit_texts.front_socket(spec.instance)).is_up
    return up and f"ListenStream={spec.front['listen']}" in (socket_text or "").splitlines()


def open_front(host: Host, spec: ReleaseSpec) -> str | None:
    """Admit clients; return why that failed, or None. An open front stays as it is."""
    if is_open(host, spec):
        return None
    socket = unit_texts.front_socket(spec.instance)
    answer = Ran(0, "")
    if not services.show(host, socket).is_up:
        # A front that still drains would hold the listening address.
        services.stop(host, unit_texts.front_service(spec.instance), 10)
        answer = host.systemctl("start", socket)
    if services.show(host, socket).is_up:
        return _enrol(host, spec) if spec.front["kind"] == "router" else None
    return f"the front {spec.front['listen']} does not open: {answer.output.strip() or 'its socket unit failed'}"


def _enrol(host: Host, spec: ReleaseSpec) -> str | None:
    """Have the routers list the server; return why none does, or None."""
    unit = unit_texts.front_enrolment(spec.instance)
    deadline = host.now() + ENROL_S
    host.systemctl("start", "--no-block", unit)
    while not services.show(host, unit).is_up:
        if host.now() >= deadline:
            why = services.show(host, unit).text or "it does not say why"
            return f"no router lists {spec.front['worker']} after {ENROL_S:.0f} s; {unit} tries on: {why}"
        host.sleep(0.5)
    return None


def close_front(host: Host, spec: ReleaseSpec) -> None:
    """Take no new client; connections that are open go on."""
    if spec.front["kind"] == "none":
        return
    enrolment = unit_texts.front_enrolment(spec.instance)
    if not services.is_down(host, enrolment):
        services.stop(host, enrolment, unit_texts.ENROL_STOP_S)
        host.sleep(SETTLE_S)
    host.systemctl("stop", "--no-block", unit_texts.front_socket(spec.instance), unit_texts.front_service(spec.instance))


def close_now(host: Host, spec: ReleaseSpec) -> None:
    """Close a front that is to be opened elsewhere, whatever kind it was: in the order of its units, its connections with it."""
    instance = spec.instance
    host.systemctl("stop", unit_texts.front_enrolment(instance), timeout_s=unit_texts.ENROL_STOP_S + 10)
    host.systemctl("stop", unit_texts.front_socket(instance), unit_texts.front_service(instance))


def in_flight(host: Host, spec: ReleaseSpec) -> int | None:
    """Return the requests the engine works on or has queued, None when it does not say."""
    answer = host.http(f"{spec.base_url}/metrics", key=None, body=None, timeout_s=5)
    found: dict[str, float] = {}
    for name, value in IN_FLIGHT.findall(answer.body if answer.status == 200 else ""):
        found[name] = max(found.get(name, 0.0), float(value))
    return round(sum(found.values())) if found else None


def drain(host: Host, spec: ReleaseSpec, progress: Progress) -> None:
    """Close the front and wait until nothing is in flight or the deadline has passed; then cut what is left."""
    close_front(host, spec)
    deadline = host.now() + spec.timeouts["drain_s"]
    idle = 0
    count: int | None = 0
    while host.now() < deadline:
        count = in_flight(host, spec)
        front_done = (
            spec.front["kind"] != "none" and services.show(host, unit_texts.front_service(spec.instance)).active != "deactivating"
        )
        idle = idle + 1 if count == 0 or (count is None and front_done) else 0
        if idle >= 2:
            break
        progress.say(
            f"draining: {'?' if count is None else count} requests in flight, at most {deadline - host.now():.0f} s more"
        )
        host.sleep(1)
    else:
        progress.say(
            f"drain deadline of {spec.timeouts['drain_s']:.0f} s passed; {'?' if count is None else count} requests are cut"
        )
    if spec.front["kind"] != "none":
        services.stop(host, unit_texts.front_service(spec.instance), 2)
        # The front ends the listening itself, which systemd takes for a fault of the socket unit; closed on purpose is no alarm.
        host.systemctl("reset-failed", unit_texts.front_socket(spec.instance))
