# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From log lines to a verdict; the page of the role says the same as the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.classify import (
    SOURCES,
    classify,
    told,
    troubleshooting,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.fault import DKMS, KERNEL, NVML, PACKAGES
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.faults import FAULTS

PAGE = Path(__file__).resolve().parents[6] / "roles" / "nvidia_stack" / "TROUBLESHOOTING.md"

# One line as it is printed, and the codes that it must give, in order.
LINES = [
    (KERNEL, "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "DRV-FELL-OFF-BUS"),
    (KERNEL, "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", "DRV-FELL-OFF-BUS"),
    (
        KERNEL,
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
        "DRV-CLOSED-ON-BLACKWELL",
    ),
    (
        KERNEL,
        "NVRM: installed in this vGPU host system is not supported by open nvidia.ko because it does not include the GSP",
        "DRV-OPEN-ON-OLD-CARD",
    ),
    (KERNEL, "nouveau 0000:01:00.0: vgaarb: deactivate vga console", "DRV-NOUVEAU"),
    (KERNEL, "NovaCore 0000:01:00.0: Probe Rust driver: GPU instance built", "DRV-NOVACORE"),
    (KERNEL, "NVRM: The NVIDIA probe routine was not called for 3 device(s).", "DRV-OTHER-OWNER"),
    (KERNEL, "Loading of unsigned module is rejected", "DRV-UNSIGNED"),
    (PACKAGES, "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "DRV-UNSIGNED"),
    (DKMS, "Error! Your kernel headers for kernel 6.1.0-40-amd64 cannot be found.", "DRV-NO-HEADERS"),
    (DKMS, "Error! Bad return status for module build on kernel: 6.17.0-1-generic (x86_64)", "DRV-BUILD-FAILED"),
    (NVML, "Failed to initialize NVML: Driver/library version mismatch", "DRV-MISMATCH-MODULE-OLD"),
    (NVML, "forward compatibility was attempted on non supported HW", "DRV-FORWARD-COMPAT"),
    (KERNEL, "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", "DRV-FIRMWARE-SETTINGS"),
    (KERNEL, "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:2638)", "DRV-GSP"),
    (PACKAGES, "modprobe: FATAL: Module nvidia_uvm is in use.", "DRV-IN-USE"),
    (NVML, "CUDA_ERROR_UNKNOWN", "DRV-NO-UVM"),
    (NVML, "RuntimeError: no CUDA-capable device is detected", "DRV-HIDDEN"),
    (NVML, "No devices were found", "DRV-NO-DEVICE"),
    (PACKAGES, "The checksum for /etc/apt/keyrings/x.asc did not match abc; it was def.", "DRV-BAD-KEY"),
    (PACKAGES, "E: Conflicting values set for option Signed-By regarding source https://x/ /: a != b", "DRV-BAD-KEY"),
    (PACKAGES, "W:Failed to fetch https://mirror/InRelease  Could not connect to mirror:443", "DRV-SOURCE-UNREACHABLE"),
    (PACKAGES, "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)", "DRV-LOCKED"),
    (PACKAGES, "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.", "DRV-HALF-DONE"),
    (PACKAGES, "E: Held packages were changed and -y was used without --allow-change-held-packages.", "DRV-HELD"),
    (PACKAGES, "- nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.noarch", "DRV-HELD"),
    (PACKAGES, "cp: error writing '/boot/initrd.img': No space left on device", "DRV-NO-SPACE"),
    (KERNEL, "NVRM: Xid (PCI:0000:41:00): 109, pid=1, Ch 00000007, errorString CTX SWITCH TIMEOUT, Info 0x2c", "DRV-WEDGED"),
]


@pytest.mark.parametrize(("source", "line", "code"), LINES)
def test_a_line_gives_its_verdict(source, line, code):
    (finding, *rest) = classify({source: f"harmless\n{line}\n"})
    assert finding.fault.code == code, rest
    assert finding.evidence == (f"{source}: {line}",)


def test_every_fault_has_a_line_that_shows_it():
    assert {code for dummy, dummy2, code in LINES} == {fault.code for fault in FAULTS}


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 235",
        "systemd[1]: Started nvidia-persistenced.service - NVIDIA Persistence Daemon.",
        "NVRM: Xid (PCI:0000:41:00): 31, pid=4711, MMU Fault",
        "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
        "Setting up nvidia-kernel-open-dkms (580.95.05-1) ...",
        "Blacklisted module nouveau",
    ],
)
def test_what_is_healthy_or_of_the_application_gives_none(line):
    assert classify(dict.fromkeys(SOURCES, line)) == []


def test_a_flood_is_kept_short():
    """R44: a card that fell off the bus fills the log; the evidence stays readable, the number is told, and it says stop."""
    lines = [f"[{second}.0] NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed {second}" for second in range(5000)]
    (finding,) = classify({KERNEL: "\n".join(lines)})
    assert len(finding.evidence) == 3 and finding.count == 5000 and finding.fault.stop
    assert "Do not restart in a loop" in told([finding])


def test_a_fall_off_the_bus_asks_for_power_heat_and_clocks():
    """R45."""
    (finding,) = classify({KERNEL: "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."})
    assert all(word in finding.fault.do for word in ("power limit", "clocks", "firmware", "cooling"))


@pytest.mark.parametrize(
    ("client", "module", "old"),
    [("550.107.02", "550.90.07", "the module in the kernel is old"), ("580.65.06", "580.95.05", "user space is old")],
)
def test_a_mismatch_says_which_side_is_old(client, module, old):
    """R37: 550.107 is newer than 550.90, whatever sorting as text says."""
    lines = (
        "API mismatch: the client 'nvidia-smi' (pid 7)",
        f"has the version {client}, but",
        f"this kernel module has the version {module}.",
    )
    log = "\n".join(f"NVRM: {line}" for line in lines)
    (finding,) = classify({KERNEL: log})
    assert old in finding.as_dict()["verdict"]


def test_what_is_recognised_is_told_with_cause_and_what_to_do():
    text = told(classify({DKMS: "Error! Your kernel headers for kernel 6.1 cannot be found."}))
    assert re.match(r"DRV-NO-HEADERS: .*\n  seen:  dkms log: Error!.*\n  why:   .*\n  do:    .*$", text)
    assert told([]) == "no known fault is recognised in the logs"


def test_the_page_of_the_role_is_written_from_the_table():
    assert PAGE.read_text() == troubleshooting(), "run tools/troubleshooting.py"


def test_codes_are_unique():
    codes = [fault.code for fault in FAULTS]
    assert len(codes) == len(set(codes))
