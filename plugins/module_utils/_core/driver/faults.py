# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The table of what goes wrong with a driver: how it shows, what it means, what to do. TROUBLESHOOTING.md is written from "
"it."""

from __future__ import annotations

from .fault import DKMS, KERNEL, NVML, PACKAGES, Fault
from .faults_packages import OF_PACKAGES

# In the order of how much they explain: what comes first is the likelier root of what comes later.
FAULTS = (
    Fault(
        "DRV-FELL-OFF-BUS",
        "a card fell off the bus",
        (KERNEL, NVML),
        (
            r"Xid.*: 79,",
            r"GPU has fallen off the bus",
            # Xid 154 also tells that there is nothing left to do: "to 0x0 (None)".
            r"Xid.*: 154,(?!.*\bto (0x0\b|None))",
            r"GPU recovery action changed(?!.*\bto (0x0\b|None))",
            r"GPU is lost",
        ),
        "The card no longer answers on PCIe: power, heat, riser, slot or firmware; a restart of the engine does not bring it "
        "back.",
        "Drain the host and power it off and on. Seen again: check power cables, cooling, slot and firmware, cap the power "
        "limit "
        "(nvidia-smi -pl) and the clocks (nvidia-smi -lgc), and have the card exchanged. Do not restart in a loop.",
        stop=True,
    ),
    Fault(
        "DRV-CLOSED-ON-BLACKWELL",
        "the closed kernel module is loaded on a card that needs the open one",
        (KERNEL,),
        (r"requires use of the NVIDIA open kernel modules", r"installed in this system is not supported by the proprietary"),
        "Blackwell cards run with the open kernel modules alone; the closed one finds no device.",
        "Set nvidia_stack_mode: manage and nvidia_stack_kernel_module: open, allow one reboot, and run again.",
    ),
    Fault(
        "DRV-OPEN-ON-OLD-CARD",
        "the open kernel module is loaded on a card that needs the closed one",
        (KERNEL,),
        (r"is not supported by open nvidia\.ko",),
        "The open kernel modules need Turing or newer.",
        "Take the card out of the host, or set nvidia_stack_kernel_module: closed on a branch that still has it.",
    ),
    Fault(
        "DRV-NOVACORE",
        "NovaCore has the cards",
        (KERNEL,),
        (r"\bNovaCore\b.*(probe|bound|GPU|NVIDIA)", r"\bnova_core\b.*(probe|bound)", r"NVRM:.*\bnova(_core|-core)?\b"),
        "Kernels from 7.0 on ship nova, which binds before the driver of NVIDIA does.",
        "Run with nvidia_stack_mode: manage: it blacklists nova, nova_core and nova_drm, rebuilds the initramfs and reboots "
        "once.",
    ),
    Fault(
        "DRV-NOUVEAU",
        "nouveau has the cards",
        (KERNEL,),
        (r"\bnouveau [0-9a-f]{4}:[0-9a-f]{2}:", r"NVRM:.*nouveau", r"nouveau: probe of", r"fb0: nouveau"),
        "The free driver of the kernel bound first; it cannot be unloaded while a console is on the card.",
        "Run with nvidia_stack_mode: manage: it blacklists nouveau, rebuilds the initramfs and reboots once.",
    ),
    Fault(
        "DRV-OTHER-OWNER",
        "another driver has the cards",
        (KERNEL,),
        (
            r"NVRM: The NVIDIA probe routine was not called for \d+ device",
            r"NVRM: This can occur when another driver",
            r"NVRM: another driver was loaded and",
            r"vfio-pci.*10de",
        ),
        "The module loads and finds no free adapter: nouveau, nvidiafb, rivafb or vfio-pci was there first.",
        "See `lspci -k -d 10de:` for the owner. nouveau and nvidiafb: nvidia_stack_mode: manage and one reboot. vfio-pci: the "
        "card "
        "is passed to a virtual machine on purpose.",
    ),
    Fault(
        "DRV-UNSIGNED",
        "the kernel refuses the module because of its signature",
        (KERNEL, DKMS, PACKAGES),
        (
            r"Loading of (unsigned )?module.* is rejected",
            r"modprobe: ERROR: could not insert '?nvidia.*Key was rejected by service",
            r"Key was rejected by service",
            r"Lockdown:.*unsigned module loading is restricted",
            r"PKCS#7 signature not signed with a trusted key",
        ),
        "Secure Boot is on and the firmware does not know the key that signed the module.",
        "Ubuntu: nvidia_stack_source: distribution brings modules that are signed. Else enrol the key of DKMS: "
        "`mokutil --import /var/lib/dkms/mok.pub` (Ubuntu: /var/lib/shim-signed/mok/MOK.der), confirm at the console, reboot.",
    ),
    Fault(
        "DRV-NO-HEADERS",
        "the headers of the kernel are not there",
        (DKMS, PACKAGES),
        (
            r"[Yy]our kernel headers for kernel .* cannot be found",
            r"kernel headers for this kernel do not seem to be installed",
            r"Unable to locate package linux-headers-",
            r"No match for argument: kernel-devel",
            r"/lib/modules/\S+/build: No such file",
        ),
        "DKMS builds against the headers of each kernel; without them the packages install and no module is there.",
        "Install linux-headers-$(uname -r) (RHEL family: kernel-devel-$(uname -r)), or boot a kernel whose headers are "
        "offered; then "
        "run again.",
    ),
    Fault(
        "DRV-BUILD-FAILED",
        "the module did not compile",
        (DKMS, PACKAGES),
        (
            r"Bad return status for module build on kernel",
            r"Error! Build of .*nvidia.* failed",
            r"make(\[\d+\])?: \*\*\* .*(nvidia|modules).* Error",
            r"gcc: error|compiler .* differs from the one used to build the kernel|cc: command not found|gcc: not found",
        ),
        "The sources of this driver do not fit this kernel, or the compiler does not.",
        "Read the first error in /var/lib/dkms/nvidia/<version>/build/make.log. Take a newer point release of the branch for "
        "a new kernel, "
        "or boot the kernel before; install the compiler the kernel was built with.",
    ),
    Fault(
        "DRV-MISMATCH-MODULE-OLD",
        "user space is newer than the module in the kernel",
        (KERNEL, NVML),
        (
            r"Failed to initialize NVML: Driver/library version mismatch",
            r"Driver/library version mismatch",
            r"NVRM: API mismatch: the client .*",
            r"NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        ),
        "Packages were moved while the old module stayed loaded, by unattended upgrades for example; what runs goes on, "
        "nothing new starts.",
        "Reboot, or unload the modules and load them again (nvidia_stack_reload_allowed: true). Then nvidia_stack_mode: "
        "manage holds the "
        "whole set. The kernel log names both versions: the smaller one is the side to move.",
    ),
    Fault(
        "DRV-FORWARD-COMPAT",
        "a forward compatibility library is in the path",
        (NVML,),
        (
            r"forward compatibility was attempted on non supported HW",
            r"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            r"cuda-compat.*libcuda",
        ),
        "libcuda of a package cuda-compat shadows the one of the driver; it works on data centre cards alone.",
        "Remove cuda-compat-* or take /usr/local/cuda*/compat out of LD_LIBRARY_PATH and /etc/ld.so.conf.d; in an image, mask "
        "that folder.",
    ),
    Fault(
        "DRV-FIRMWARE-SETTINGS",
        "the firmware gives the cards no room",
        (KERNEL,),
        (
            r"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid",
            r"BAR ?\d+ .*(failed to assign|no space)",
            r"NVRM: BAR\d is \d+M @ 0x0",
            r"can't claim BAR|bridge window .* failed to assign",
        ),
        "A card of 96 GB wants a window of 128 GB above 4 GB: Above 4G Decoding or Resizable BAR is off.",
        "Turn on Above 4G Decoding and Resizable BAR, turn off CSM in the firmware, and update it.",
    ),
    Fault(
        "DRV-GSP",
        "the firmware of the card did not start",
        (KERNEL,),
        (
            r"RmInitAdapter failed",
            r"NVRM: .*(GSP|gsp).*(failed|timeout|Timeout)",
            r"Direct firmware load for nvidia/\S+ failed",
            r"Xid.*: (119|120),",
        ),
        "Firmware files of another version than the module, or a card in a bad state.",
        "See that all packages of the set are of one version; power the host off and on, a warm reboot does not reset a card.",
        stop=True,
    ),
    Fault(
        "DRV-IN-USE",
        "the module cannot be unloaded because something holds it",
        (KERNEL, PACKAGES),
        (
            r"modprobe: FATAL: Module nvidia\w* is in use",
            r"rmmod: ERROR: Module nvidia\w* is in use",
            r"Module nvidia is in use by",
        ),
        "A process, persistenced or a monitoring agent has a device node open.",
        "`fuser -v /dev/nvidia*` names who. Stop the units (nvidia_stack_stop_units), or allow one reboot; do not wait for it "
        "to free itself.",
    ),
    Fault(
        "DRV-WEDGED",
        "a card is busy without a process",
        (KERNEL, NVML),
        (r"Xid.*: (8|109|119|45), .*(Channel|CTX SWITCH TIMEOUT|timeout)", r"GPU reset required", r"GPU requires reset"),
        "A collective that hung was killed; the card stays at full load, without a process and often without an Xid.",
        "Reset the card while nothing runs (nvidia-smi --gpu-reset -i N), else reboot. Then see P2P: IOMMU mode and ACSCtl "
        "before any level.",
        stop=True,
    ),
    Fault(
        "DRV-NO-UVM",
        "the device node nvidia-uvm is not there",
        (NVML, KERNEL),
        (r"/dev/nvidia-uvm: No such file", r"CUDA_ERROR_UNKNOWN", r"CUDA unknown error", r"cudaErrorUnknown"),
        "nvidia-smi works and CUDA does not: module nvidia_uvm is not loaded or its node was not made after the reboot.",
        "modprobe nvidia_uvm; nvidia-modprobe -u -c=0; enable nvidia-persistenced. The role asserts the whole set of nodes.",
    ),
    Fault(
        "DRV-HIDDEN",
        "the cards are hidden from this process",
        (NVML,),
        (
            r"no CUDA-capable device is detected",
            r"CUDA_ERROR_NO_DEVICE",
            r"/dev/nvidia\d+: Operation not permitted",
            r"Failed to initialize NVML: Unknown Error",
        ),
        "The host has cards, the process does not see them: a cgroup of a scheduler, DeviceAllow of a unit, or "
        "CUDA_VISIBLE_DEVICES.",
        "Compare with nvidia-smi outside. In a container that lost its cards after `systemctl daemon-reload`: use CDI device "
        "names. Under "
        "Slurm: ask for the cards.",
    ),
    Fault(
        "DRV-NO-DEVICE",
        "the module found no device",
        (KERNEL, NVML),
        (
            r"No devices were found",
            r"NVRM: No NVIDIA (GPU|graphics adapter) found",
            r"modprobe: ERROR: could not insert 'nvidia': No such device",
        ),
        "The module runs and no card answers it: wrong flavour, another owner, or firmware settings.",
        "Look for another finding beside this one; `lspci -nn -d 10de:` must list the cards, else see power and slot.",
    ),
    *OF_PACKAGES,
)
