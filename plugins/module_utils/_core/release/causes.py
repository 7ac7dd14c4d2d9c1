# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What kills or stops an engine, by the words it leaves in its log: pattern, meaning, what to do.

Patterns were read in the source of SGLang 0.5.23 (file in ``seen``), in messages of torch, NCCL, Triton and the kernel, and in
reports of people who met them. docs/runbook.md shows this table; tools/runbook.py writes it there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# What outranks what: the host under all, then errors, then silence, then what only follows from another failure.
Rank = Literal["host", "error", "silence", "follows"]
RANKS: tuple[Rank, ...] = ("host", "error", "silence", "follows")
# The last thing the engine told about its start. "served" is said by SGLang once its own warm-up is through.
Stage = Literal["begin", "connect", "weights", "memory", "capture", "served"]
STAGES: dict[Stage, str] = {
    "connect": r"init (torch distributed|parallel) begin",
    "weights": r"load weight begin",
    "memory": r"load weight end",
    "capture": r"capturing batches|capture .*cuda ?graph.* begin",
    "served": r"the server is fired up",
}


@dataclass(frozen=True)
class Cause:
    """``stages`` limits a pattern to what the engine did last; ``pattern`` is None where silence itself is the sign."""

    code: str
    what: str
    do: str
    pattern: str | None
    seen: str
    rank: Rank = "error"
    stages: tuple[Stage, ...] = ()
    memory: bool = False
    look: str = ""

    def fits(self, line: str, stage: Stage) -> bool:
        return (
            self.pattern is not None
            and (not self.stages or stage in self.stages)
            and re.search(self.pattern, line, re.IGNORECASE) is not None
        )


CUDA_MEMORY = r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation"
CAUSES = (
    Cause(
        "LOG-XID",
        "the driver reports a fault of a card",
        "drain the host; 79 and 154 need a reset or a reboot: look at power, heat and seating; a restart alone does not help",
        r"NVRM: Xid|GPU has fallen off the bus",
        "kernel log; R44, R45",
        rank="host",
        look="journalctl -k -g 'NVRM: Xid'",
    ),
    Cause(
        "LOG-HOST-OOM",
        "the host ran out of memory and the kernel killed a process",
        "give the host memory: fewer loader threads, no second server, no weights in a tmpfs; the cards are not the cause",
        r"Out of memory: Killed process|oom-kill:|oom_reaper|killed by the OOM killer|Memory cgroup out of memory",
        "kernel log, systemd",
        rank="host",
        look="journalctl -k -g 'oom-kill|Out of memory'; free -h",
    ),
    Cause(
        "LOG-DRIVER",
        "the driver does not fit the engine or its own libraries",
        "reboot or reload the module after a driver update; playbooks/deploy.yml verifies driver and cards",
        r"Driver/library version mismatch|driver version is insufficient|No CUDA GPUs are available"
        r"|forward compatibility was attempted",
        "CUDA, NVML; R36, R37",
        rank="host",
        look="nvidia-smi; cat /proc/driver/nvidia/version",
    ),
    Cause(
        "LOG-PORT",
        "a port is in use",
        "stop the process that holds it, or set sglang_service_port; derived ports (NCCL, dist_init) count too",
        r"address already in use|EADDRINUSE|port is already in use|\berr(or|no)\b[^0-9-]{0,12}-?98\b",
        "srt/server_args.py:886, torch, NCCL; R24, R25",
        look="ss -ltnp",
    ),
    Cause(
        "LOG-NCCL-BUFFERS",
        "NCCL found no memory for its buffers",
        "lower mem_fraction_static; NCCL takes its buffers from what that leaves free",
        r"Failed to CUDA (host )?(calloc|malloc|alloc)",
        "NCCL; R72",
        memory=True,
    ),
    Cause(
        "LOG-OOM-POOL",
        "after the weights no memory is left for the KV pool",
        "raise mem_fraction_static (the opposite of what helps while it serves), or use more stages or cards",
        r"not enough memory\. please try to increase|(increase|raise) --mem-fraction-static",
        "srt/model_executor/pool_configurator.py:96; R66",
        memory=True,
        look="tools/inferops memory --model CONFIG.json --facts FACTS.json -- ARGV",
    ),
    Cause(
        "LOG-OOM-WEIGHTS",
        "the weights do not fit into the card",
        "look for another process on the card; else more stages or cards; mem_fraction_static changes nothing",
        CUDA_MEMORY,
        "torch",
        stages=("weights",),
        memory=True,
        look="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    ),
    Cause(
        "LOG-OOM-CAPTURE",
        "memory ran out while graphs were captured",
        "lower mem_fraction_static, or cuda_graph_max_bs_decode; leave the graphs on",
        rf"{CUDA_MEMORY}|capture cuda graph failed: .*out of memory",
        "srt/model_executor/runner/decode_cuda_graph_runner.py:603; R76",
        stages=("memory", "capture"),
        memory=True,
    ),
    Cause(
        "LOG-OOM-RUN",
        "memory ran out while it served",
        "lower mem_fraction_static or chunked_prefill_size (the opposite of what helps at the start)",
        rf"{CUDA_MEMORY}|(prefill|decode) out of memory",
        "torch; srt/mem_cache/allocation.py:239; R66",
        stages=("served",),
        memory=True,
    ),
    Cause(
        "LOG-OOM-START",
        "memory of a card ran out before the weights were loaded",
        "look for another process on the card; the context alone found no room",
        CUDA_MEMORY,
        "torch",
        stages=("begin", "connect"),
        memory=True,
        look="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    ),
    Cause(
        "LOG-FLAG",
        "a flag is unknown, ambiguous or of a wrong value",
        "run playbooks/check.yml: it names the flag, the releases that have it, and what to write instead",
        r"unrecognized arguments?:|ambiguous option|invalid choice:|expected (at least )?one argument|are required:",
        "argparse; R2, R6, R101",
        look="tools/inferops check --source PATH -- ARGV",
    ),
    Cause(
        "LOG-PIPELINE",
        "this architecture has no pipeline support in this release",
        "use a release that has it, or pp_size 1",
        r"pipeline parallel\w* is not (compatible|supported)|does not support pipeline parallel|not support PP\b",
        "srt/model_executor/model_runner.py:515, srt/models; R1",
    ),
    Cause(
        "LOG-ARCHITECTURE",
        "this release does not know the model's architecture",
        "use a release that has it; compare architectures in config.json",
        r"model architectures? .*(are not supported|failed to be)",
        "srt/models/registry.py:64; R99",
    ),
    Cause(
        "LOG-WEIGHTS",
        "weights are missing or damaged",
        "let the role sglang_model prove or fetch the folder: run playbooks/check.yml",
        r"cannot find any model weights|does not appear to have (a file|files) named|Incorrect path_or_model_id"
        r"|No such file or directory: '[^']*\.(safetensors|bin|json)'|SafetensorError|incomplete metadata|repo id must",
        "srt/model_loader/loader.py:581, transformers, safetensors",
        look="ls -l MODEL; journalctl -u UNIT",
    ),
    Cause(
        "LOG-KERNEL-LIMIT",
        "a kernel asks for more than this card has",
        "choose another back end for this card (attention_backend, moe_runner_backend); memory settings do not help",
        r"out of resources?: |too many resources requested for launch|OutOfResources|no kernel image is available",
        "Triton, CUDA",
    ),
    Cause(
        "LOG-OS-LIMIT",
        "a limit of the operating system is reached",
        "raise the limit in a drop-in of the unit (LimitNOFILE, TasksMax), or free space in /dev/shm and on disk",
        r"too many open files|can't start new thread|no space left on device|cannot allocate memory",
        "libc",
        look="df -h / /dev/shm; systemctl show -p TasksMax,LimitNOFILE UNIT",
    ),
    Cause(
        "LOG-LIBRARY",
        "a library or module is missing",
        "see what changed with playbooks/drift.yml; install the engine from its lock again",
        r"cannot open shared object file|ModuleNotFoundError|undefined symbol",
        "ld.so, Python",
    ),
    Cause(
        "LOG-CUDA",
        "a card reports an error in a kernel",
        "look for an Xid of the same second; set CUDA_LAUNCH_BLOCKING=1 in a trial to see the kernel; try another back end",
        r"CUDA error: |illegal memory access|unspecified launch failure|uncorrectable ECC",
        "torch",
        look="journalctl -k -g 'NVRM: Xid'",
    ),
    Cause(
        "LOG-NCCL-HANG",
        "ranks wait for each other and nothing moves",
        "look at the path between the cards: IOMMU mode, ACS, NCCL_P2P_LEVEL, the interface; "
        "take stacks before killing it; memory and graphs are not the cause",
        r"collective operation timeout|watchdog caught collective|timed out after .* waiting for clients|wait timeout after \d+",
        "torch; R20, R26",
        rank="silence",
        look="nvidia-smi topo -m; cat /proc/cmdline; NCCL_DEBUG=INFO in sglang_service_env",
    ),
    Cause(
        "LOG-WATCHDOG",
        "a forward pass did not end within the watchdog's time, so SGLang killed itself",
        "a hang, not a lack of memory: look at stacks.txt in the evidence and at the path between the cards",
        r"watchdog timeout|\bwatchdog\b.*(timed out|expired)",
        "srt/utils/watchdog.py",
        rank="silence",
        look="journalctl -u UNIT -g watchdog",
    ),
    Cause(
        "LOG-CAPTURE-HANG",
        "the capture of graphs stands still",
        "the first collective inside a graph hangs: look at the transport between the ranks (IOMMU mode, ACS, NCCL_P2P_LEVEL, "
        "the interface); leave the graphs on",
        None,
        "silence after a line of the capture; R20",
        rank="silence",
        stages=("capture",),
        look="nvidia-smi topo -m; NCCL_DEBUG=INFO in sglang_service_env",
    ),
    Cause(
        "LOG-CONNECT-HANG",
        "the ranks do not find each other",
        "look at dist_init_addr, NCCL_SOCKET_IFNAME, firewalls, and that every rank runs the same release",
        None,
        "silence after the ranks began to connect",
        rank="silence",
        stages=("connect",),
        look="ss -tnp; NCCL_DEBUG=INFO in sglang_service_env",
    ),
    Cause(
        "LOG-LOAD-HANG",
        "loading stands still",
        "look at the file system of the weights and at what the processes wait for (stacks.txt in the evidence)",
        None,
        "silence while weights are read",
        rank="silence",
        stages=("weights",),
        look="iostat -x 5; cat /proc/PID/wchan",
    ),
    Cause(
        "LOG-HANG",
        "the engine runs and does nothing that can be seen",
        "look at what its processes wait for (stacks.txt in the evidence) and at the cards",
        None,
        "silence; R29, R59",
        rank="silence",
        look="nvidia-smi; cat /proc/PID/wchan",
    ),
    Cause(
        "LOG-PEER-LOST",
        "a rank lost another one",
        "find the rank or host that ended first: its log holds the cause",
        r"ncclRemoteError|remote process exited|connection (closed|reset) by (remote )?peer|ncclSystemError|socketProgress",
        "NCCL, gloo",
        rank="follows",
        look="journalctl -u UNIT on every host of the group",
    ),
    Cause(
        "LOG-CHILD",
        "a child of the server failed and left no cause in the log",
        "look at the lines above it and at the kernel log",
        r"received sigquit|sigquit received|subprocess \S+ \(pid=\d+\) crashed|usually means .*child failed",
        "srt/entrypoints/engine.py:1978, srt/utils/watchdog.py:219",
        rank="follows",
        look="journalctl -u UNIT; journalctl -k",
    ),
)
