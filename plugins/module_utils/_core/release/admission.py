# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may reach the engine: the front is closed first on drain and opened last after a proof."""

from __future__ import annotations

import re

from . import services, unit_texts
from .host import Host
from .progress import Progress
from .spec import ReleaseSpec

# Gauges of srt/observability (0.5.23) and srt/metrics/collector.py (0.5.12); the largest over ranks, since a sum may count twice.
IN_FLIGHT = re.compile(r"^sglang:(num_running_reqs|num_queue_reqs)(?:\{[^}]*\})?\s+([0-9.eE+-]+)$", re.MULTILINE)


def is_open(host: Host, spec: ReleaseSpec) -> bool:
    """Return whether clients are admitted; without a front of ours that is not our business and counts as open."""
    return spec.front["kind"] == "none" or services.show(host, unit_texts.front_socket(spec.instance)).is_up


def open_front(host: Host, spec: ReleaseSpec) -> str | None:
    """Admit clients; return why that failed, or None. An open front stays as it is."""
    if is_open(host, spec):
        return None
    # A front that still drains would hold the listening address.
    services.stop(host, unit_texts.front_service(spec.instance), 10)
    answer = host.systemctl("start", unit_texts.front_socket(spec.instance))
    if is_open(host, spec):
        return None
    return f"the front {spec.front['listen']} does not open: {answer.output.strip() or 'its socket unit failed'}"


def close_front(host: Host, spec: ReleaseSpec) -> None:
    """Take no new client; connections that are open go on."""
    if spec.front["kind"] == "none":
        return
    host.systemctl("stop", "--no-block", unit_texts.front_socket(spec.instance), unit_texts.front_service(spec.instance))


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
