"""The classifier of engine logs: one real message per cause, phases, precedence, and what a hang must never be called.

Messages are those of SGLang 0.5.23, torch, NCCL, Triton, argparse and the kernel, as they print them; R numbers are reports.
"""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.causes import CAUSES
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.engine_log import EngineLog, classify

LOADED = [
    "Load weight begin. avail mem=94.10 GB",
    "Load weight end. elapsed=60.00 s, type=KimiK25",
    "Memory pool end. avail mem=9.2 GB",
]
CAPTURE = [*LOADED, "Capturing batches (bs=16 avail_mem=8.91 GB):   4%|4         | 1/25 [00:03<01:22,  3.44s/it]"]
SERVED = [*CAPTURE, "The server is fired up and ready to roll!"]
CUDA_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 94.97 GiB of which "
    "1.06 GiB is free."
)
QUIT = "Received sigquit from a child process. It usually means the child failed."
POOL = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.7"
SAID = {
    "LOG-XID": ["NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."],
    "LOG-HOST-OOM": ["Out of memory: Killed process 4321 (sglang::schedul) total-vm:99kB, anon-rss:88kB", QUIT],
    "LOG-DRIVER": ["Failed to initialize NVML: Driver/library version mismatch"],
    "LOG-PORT": ["OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"],
    "LOG-NCCL-BUFFERS": ["kimi:77:99 [3] transport.cc:33 NCCL WARN Failed to CUDA calloc 10485760 bytes"],
    "LOG-OOM-POOL": [*LOADED[:2], POOL, QUIT],
    "LOG-OOM-WEIGHTS": [LOADED[0], CUDA_OOM, QUIT],
    "LOG-OOM-CAPTURE": [*CAPTURE, CUDA_OOM, "Exception: Capture cuda graph failed: CUDA out of memory.", QUIT],
    "LOG-OOM-RUN": [*SERVED, CUDA_OOM, QUIT],
    "LOG-OOM-START": [CUDA_OOM],
    "LOG-FLAG": ["launch_server.py: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode"],
    "LOG-PIPELINE": ["AssertionError: Pipeline Parallel is not compatible with this model.", QUIT],
    "LOG-ARCHITECTURE": ["ValueError: Model architectures ['NewLM'] are not supported for now. Supported architectures: ..."],
    "LOG-WEIGHTS": ["RuntimeError: Cannot find any model weights with `/srv/models/kimi`"],
    "LOG-KERNEL-LIMIT": [
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376. "
        "Reducing block sizes or `num_stages` may help."
    ],
    "LOG-OS-LIMIT": ["OSError: [Errno 24] Too many open files"],
    "LOG-LIBRARY": ["ImportError: libcudart.so.13: cannot open shared object file: No such file or directory"],
    "LOG-CUDA": [*SERVED, "RuntimeError: CUDA error: an illegal memory access was encountered", QUIT],
    "LOG-NCCL-HANG": ["[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600000 milliseconds"],
    "LOG-WATCHDOG": [*SERVED, "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", QUIT],
    "LOG-PEER-LOST": ["torch.distributed.DistBackendError: ncclRemoteError: A call failed possibly due to a network error"],
    "LOG-CHILD": ["Subprocess scheduler_0 (pid=77) crashed with exit code -9. Triggering SIGQUIT for cleanup..."],
}
SILENT = {
    "LOG-CAPTURE-HANG": CAPTURE,
    "LOG-CONNECT-HANG": ["Init torch distributed begin."],
    "LOG-LOAD-HANG": LOADED[:1],
    "LOG-HANG": SERVED,
}


def test_every_cause_has_a_message_of_the_real_world_here():
    assert {*SAID, *SILENT} == {cause.code for cause in CAUSES}


@pytest.mark.parametrize("code", SAID)
def test_a_message_is_known_in_its_phase_and_named_as_evidence(code):
    found = classify("\n".join(SAID[code]))
    assert found.code == code
    assert found.lines and all(line in SAID[code] for line in found.lines)
    assert found.do


@pytest.mark.parametrize("code", SILENT)
def test_silence_is_told_by_what_the_engine_did_last(code):
    """R20, R29, R59."""
    assert classify("\n".join(SILENT[code]), hung=True).code == code
    assert classify("\n".join(SILENT[code])) is None


def test_a_capture_that_stands_still_is_no_reason_to_switch_graphs_off():
    """R20: evidence is the last line of the capture, the advice is about transport."""
    found = classify("\n".join(CAPTURE), hung=True)
    assert found.lines == (CAPTURE[-1],)
    assert "leave the graphs on" in found.do and "NCCL" in found.do and "disable" not in found.do


@pytest.mark.parametrize("hung", [True, False])
@pytest.mark.parametrize("memory", [cause for cause in CAUSES if cause.memory], ids=lambda cause: cause.code)
def test_a_hang_is_never_called_a_lack_of_memory(memory, hung):
    lines = [*SAID[memory.code], *([] if hung else SAID["LOG-WATCHDOG"][-2:])]
    found = classify("\n".join(lines), hung=hung)
    assert not next(cause for cause in CAUSES if cause.code == found.code).memory


def test_the_two_kinds_of_memory_get_opposite_advice():
    """R66, R72."""
    assert classify("\n".join(SAID["LOG-OOM-POOL"])).do.startswith("raise mem_fraction_static")
    for code in ("LOG-OOM-RUN", "LOG-OOM-CAPTURE", "LOG-NCCL-BUFFERS"):
        assert classify("\n".join(SAID[code])).do.startswith("lower mem_fraction_static")


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.DistNetworkError: The server socket has failed to bind. port: 29500, code: -98, name: EADDRINUSE",
        "ncclSystemError: System call (e.g. socket, malloc) failed: error code -98",
        "ValueError: Port is already in use. dist_init_port=20000 port_base=20001 detokenizer_port=20002",
        "OSError: [Errno 98] Address already in use",
    ],
)
def test_a_taken_port_is_no_fault_of_the_network(line):
    """R24 (derived ports too), R25."""
    assert classify(f"{line}\n{SAID['LOG-PEER-LOST'][0]}\n{QUIT}").code == "LOG-PORT"


def test_sigquit_is_traced_to_the_first_child_that_said_why():
    lines = [*LOADED, "Scheduler hit an exception: Traceback (most recent call last):", SAID["LOG-KERNEL-LIMIT"][0], QUIT]
    lines += [SAID["LOG-PEER-LOST"][0], "RuntimeError: CUDA error: unspecified launch failure", SAID["LOG-CHILD"][0]]
    assert classify("\n".join(lines)).code == "LOG-KERNEL-LIMIT"


def test_the_host_outranks_what_the_engine_complains_about():
    assert classify("\n".join([CUDA_OOM, *SAID["LOG-XID"]])).code == "LOG-XID"
    assert classify("\n".join([*SAID["LOG-PEER-LOST"], *SAID["LOG-HOST-OOM"]])).code == "LOG-HOST-OOM"
    assert classify("\n".join([*CAPTURE, *SAID["LOG-XID"]]), hung=True).code == "LOG-XID"


def test_warnings_and_requests_are_no_cause():
    mild = ["WARNING: Ignore import error when loading sglang.srt.models.x: ModuleNotFoundError: No module named 'x'"]
    assert classify("\n".join([*mild, *CAPTURE]), hung=True).code == "LOG-CAPTURE-HANG"
    assert classify(mild[0]) is None
    assert not EngineLog().hear('INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable')


def test_a_journal_is_read_without_what_systemd_and_the_wrapper_say():
    head = "2026-01-02T03:04:05+00:00 host "
    journal = f"{head}systemd[1]: sglang-kimi.service: Status: CUDA error: x\n"
    journal += f"{head}python[7]: inferops: not ready: Address already in use\n{head}python[7]: {POOL}\n"
    found = classify(journal)
    assert (found.code, found.lines) == ("LOG-OOM-POOL", (POOL,))
    killed = f"{head}systemd[1]: sglang-kimi.service: A process of this unit has been killed by the OOM killer.\n"
    assert classify(killed).code == "LOG-HOST-OOM"


def test_an_unknown_error_is_given_as_it_stands():
    log = EngineLog()
    for line in ("ValueError: the moon is full", QUIT):
        log.hear(line)
    assert log.cause == "a child of the server failed [LOG-CHILD]: ValueError: the moon is full"
    assert log.verdict().lines == ("ValueError: the moon is full", QUIT)
    log.hear("RuntimeError: cancelled while it ends")
    assert log.verdict().lines[0] == "ValueError: the moon is full"


def test_what_is_shown_while_it_loads_is_no_echo_of_a_warning():
    log = EngineLog()
    said = ["Load weight begin. avail mem=20.26 GB", "/x/torch/cuda.py:61: FutureWarning: pynvml is old", "  warnings.warn("]
    said.append("Ignore import error when loading sglang.srt.models.x: No module named 'x'")
    assert [log.hear(line) for line in said] == [True] * 4
    assert log.line == said[0]
