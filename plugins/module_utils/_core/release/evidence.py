# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is written down about a candidate before it is stopped: status, journal, stacks, GPUs, resolved settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from . import services
from .engine_log import Verdict, classify
from .host import Host
from .proof import server_info
from .redact import keep_allowed, scrub

JOURNAL_LINES = "400"
# Faults of cards and the killer of processes; the rest of the kernel's log is not ours.
KERNEL = "NVRM|Xid|oom-kill|Out of memory"
GPU_QUERY = "--query-gpu=index,uuid,name,power.draw,utilization.gpu,memory.used,clocks_event_reasons.active"


def collect(
    host: Host, unit: str, base_url: str, *, key: str | None, secrets: tuple[str, ...], since: float = 0.0
) -> dict[str, str]:
    """Return texts by file name, secrets cut out; a source that does not answer is left out, nothing here can fail.

    ``since`` (unix seconds) leaves out what an earlier attempt of the same release said.
    """
    hidden = (*secrets, *([key] if key else []))
    texts = {
        "status.txt": host.run(["systemctl", "status", "--full", "--lines=0", unit], 10).output,
        "journal.txt": host.run(["journalctl", "--unit", unit, *_journal(since), "--lines", JOURNAL_LINES], 15).output,
        "kernel.txt": host.run(["journalctl", "--dmesg", *_journal(since), "--grep", KERNEL], 15).output,
        "stacks.txt": stacks(host, unit),
    }
    cards = host.run(["nvidia-smi", GPU_QUERY, "--format=csv"], 15)
    if cards.code == 0:
        texts["gpus.txt"] = cards.output
    info = server_info(host.http, base_url, key) if services.show(host, unit).pid else "not running"
    if isinstance(info, dict):
        texts["server_info.json"] = json.dumps(keep_allowed(info), indent=1, sort_keys=True) + "\n"
    return {name: scrub(text, hidden) for name, text in texts.items() if text.strip()}


def _journal(since: float) -> list[str]:
    return ["--no-pager", "--output=short-iso", f"--since=@{int(since)}"]


def cause(texts: Mapping[str, str], state: services.UnitState) -> Verdict | None:
    """Return what the journals show. Given up while it ran is a hang, whatever its log complains about."""
    late = state.status in (services.EXIT_LATE, services.EXIT_SILENT)
    hung = late or (state.active == "activating" and state.sub != "auto-restart")
    found = classify(texts.get("kernel.txt", "") + "\n" + texts.get("journal.txt", ""), hung=hung)
    # One that runs, such as after a slow gate, is not accused of an error that it lived through.
    return None if found and state.is_up and found.rank in ("error", "follows") else found


def stacks(host: Host, unit: str) -> str:
    """Return what every process of the unit waits for in the kernel: a hung collective shows here without any tool."""
    group = host.run(["systemctl", "show", "-p", "ControlGroup", "--value", unit], 10).output.strip()
    if not group or group == "/":
        return ""
    pids: list[str] = []
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
        text = host.read(Path(f"{root}{group}/cgroup.procs"))
        if text:
            pids = text.split()
            break
    out = []
    for pid in pids:
        name = (host.read(Path(f"/proc/{pid}/comm")) or "").strip()
        where = (host.read(Path(f"/proc/{pid}/wchan")) or "").strip()
        state = [
            line
            for line in (host.read(Path(f"/proc/{pid}/status")) or "").splitlines()
            if line.startswith(("State", "VmRSS", "Threads"))
        ]
        out.append(f"{pid} {name} waits in {where or '-'} {' '.join(state)}\n{_kernel_stack(host, pid)}")
    return "\n".join(out)


def _kernel_stack(host: Host, pid: str) -> str:
    try:
        return host.read(Path(f"/proc/{pid}/stack")) or ""
    except OSError:
        return ""
