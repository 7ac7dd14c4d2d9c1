#!/usr/bin/env python3
"""The stand-in for kernel, firmware and boot loader of a host with NVIDIA cards, installed under the names of the programs "
"it plays.

`fake-kernel boot '{"rival": "nouveau", …}'` changes the machine (see DEFAULTS) and boots it; `shutdown -r` boots it again. What a
boot does follows from files and packages alone: the blacklist counts as far as update-initramfs was run after it was written,
modules are those that dkms has built, nvidia-uvm is there where /etc/modules-load.d says so. A real reboot it is not: processes
that have a card open are killed, units that are enabled are started, all others go on.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

HOME = Path("/var/lib/fake-kernel")
STATE = HOME / "state.json"
PLAYS = (
    "modprobe",
    "modinfo",
    "dkms",
    "mokutil",
    "dmesg",
    "shutdown",
    "update-initramfs",
    "dracut",
    "nvidia-modprobe",
    "fake-kernel",
)
DEFAULTS = {
    "cards": 2,
    "device": "0x2bb5",
    "rival": None,  # what takes the cards at boot unless the initramfs keeps it out
    "secure_boot": False,
    "enrolled": False,
    "cut_off": False,  # the next build of a module ends as in a power cut: dpkg and apt die
    "boots": 0,
    "bound": None,
    "loaded": None,
    "uvm": False,
    "cuda": "",  # faults of the stand-in libcuda, such as ";hang cuCtxSynchronize"
    "kept_out": [],
    "sources": {},  # version -> flavour, as dkms knows them
    "built": {},  # kernel -> [version, flavour]
    "log": [],
}
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (stand-in)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  (stand-in)\n"


def read() -> dict:
    return {**DEFAULTS, **(json.loads(STATE.read_text()) if STATE.exists() else {})}


def write(state: dict) -> None:
    STATE.write_text(json.dumps(state, indent=1))
    render(state)


def render(state: dict) -> None:
    """Lay out what programs see of the kernel."""
    devices, modules = Path("/sys/bus/pci/devices"), Path("/sys/module")
    for index in range(state["cards"]):
        card = devices / f"0000:{index + 1:02x}:00.0"
        card.mkdir(exist_ok=True)
        for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("device", state["device"])):
            (card / name).write_text(text + "\n")
        (card / "driver").unlink(missing_ok=True)
        if state["bound"]:
            (HOME / "drivers" / state["bound"]).mkdir(parents=True, exist_ok=True)
            (card / "driver").symlink_to(HOME / "drivers" / state["bound"])
    for name in ("nouveau", "nova_core"):
        place = modules / name
        place.mkdir(exist_ok=True) if state["bound"] == name else place.exists() and place.rmdir()
    loaded, version, said = state["loaded"], modules / "nvidia/version", Path("/proc/driver/nvidia/version")
    for place in (version, said):
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
    nodes = (
        {"nvidiactl", *(f"nvidia{index}" for index in range(state["cards"]))} if loaded and state["bound"] == "nvidia" else set()
    )
    nodes |= {"nvidia-uvm"} if state["uvm"] else set()
    for node in set(Path("/dev").glob("nvidia*")) - {Path("/dev") / name for name in nodes}:
        node.unlink()
    for name in nodes:
        (Path("/dev") / name).touch()
    user = user_space()
    conf = [f"count {state['cards']}"]
    if loaded:
        version.write_text(loaded[0] + "\n")
        said.write_text((OPEN if loaded[1] == "open" else CLOSED).format(loaded[0]))
        conf.append(f"driver {loaded[0]}")
    if not loaded or user != loaded[0]:
        conf.append(f"fail nvmlInitWithFlags {18 if loaded else 9}")  # NVML_ERROR_LIB_RM_VERSION_MISMATCH, DRIVER_NOT_LOADED
    Path("/etc/inferops-fake").mkdir(exist_ok=True)
    Path("/etc/inferops-fake/nvml.conf").write_text("\n".join(conf) + "\n")
    # Without nvidia-uvm NVML works and CUDA does not: CUDA_ERROR_UNKNOWN.
    cuda = ",".join(["1600"] * state["cards"]) + ("" if state["uvm"] else ";fail cuInit 999")
    Path("/etc/inferops-fake/cuda.conf").write_text(cuda + state["cuda"] + "\n")


def user_space() -> str:
    """Return the version of the libraries, whichever package manager brought them."""
    rpm = ["rpm", "-q", "--qf", "%{VERSION}", "nvidia-driver-cuda-libs"]
    words = (
        rpm
        if Path("/etc/yum.repos.d/inferops-nvidia.repo").exists()
        else ["dpkg-query", "-W", "-f", "${Version}", "libnvidia-ml1"]
    )
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.partition("-")[0]


def holders() -> list[int]:
    """Return who has a card open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()).startswith("/dev/nvidia"):
                found.add(int(link.parts[2]))
        except OSError:
            continue
    return sorted(found)


def boot(state: dict) -> None:
    for pid in holders():
        os.kill(pid, signal.SIGKILL)
    state |= {"boots": state["boots"] + 1, "bound": None, "loaded": None, "uvm": False, "log": ["Linux version (stand-in)"]}
    Path("/proc/sys/kernel/random/boot_id").write_text(str(uuid.uuid4()) + "\n")
    rival = state["rival"]
    if rival and rival not in state["kept_out"]:
        state["bound"] = rival
        state["log"].append(f"{rival} 0000:01:00.0: vgaarb: deactivate vga console")
    insert(state)
    listed = "\n".join(path.read_text() for path in Path("/etc/modules-load.d").glob("*.conf") if path.exists())
    state["uvm"] = bool(state["loaded"]) and re.search(r"^nvidia_uvm$", listed, re.MULTILINE) is not None
    write(state)


def insert(state: dict) -> int:
    """Load the module that is on disk, as far as the kernel lets it."""
    built = state["built"].get(os.uname().release)
    if state["loaded"]:
        return 0
    if not built:
        return fail("modprobe: FATAL: Module nvidia not found in directory /lib/modules/" + os.uname().release)
    if state["secure_boot"] and not state["enrolled"]:
        state["log"].append("Loading of unsigned module is rejected")
        return fail("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")
    if state["bound"]:
        state["log"].append(f"NVRM: The NVIDIA probe routine was not called for {state['cards']} device(s).")
        return fail("modprobe: ERROR: could not insert 'nvidia': No such device")
    state["loaded"] = built
    state["log"].append(f"NVRM: loading NVIDIA UNIX {'Open ' if built[1] == 'open' else ''}Kernel Module for x86_64  {built[0]}")
    if built[1] == "closed" and int(state["device"], 16) >= 0x2900:
        state["log"].append("NVRM: installed in this system requires use of the NVIDIA open kernel modules.")
        return 0
    state["bound"] = "nvidia"
    return 0


def fail(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def modprobe(state: dict, words: list[str]) -> int:
    names = [word.replace("-", "_") for word in words if not word.startswith("-")]
    if "-r" in words:
        if holders():
            return fail(f"modprobe: FATAL: Module {names[0]} is in use.")
        state |= {"loaded": None, "uvm": False, "bound": None if state["bound"] == "nvidia" else state["bound"]}
        write(state)
        return 0
    status = insert(state)
    if "nvidia_uvm" in names and status == 0:
        state["uvm"] = True
    write(state)
    return status


def modinfo(state: dict, words: list[str]) -> int:
    kernel = words[words.index("-k") + 1]
    built = state["built"].get(kernel)
    if not built:
        return fail("modinfo: ERROR: Module nvidia not found.")
    asked = words[words.index("-F") + 1]
    print({"version": built[0], "license": "Dual MIT/GPL" if built[1] == "open" else "NVIDIA"}[asked])
    return 0


def dkms(state: dict, words: list[str]) -> int:
    if words[0] == "install":
        version = words[1].partition("/")[2]
        state["sources"] = {**state["sources"], version: words[words.index("--flavour") + 1]}
    elif words[0] == "remove":
        version = words[1].partition("/")[2]
        state["sources"].pop(version, None)
        state["built"] = {kernel: built for kernel, built in state["built"].items() if built[0] != version}
        write(state)
        return 0
    if state["cut_off"]:
        state["cut_off"] = False
        write(state)
        subprocess.run(["sh", "-c", "kill -9 $(pidof apt-get) $(pidof dpkg)"], check=False)
        return 1
    for version, flavour in state["sources"].items():
        for place in Path("/lib/modules").iterdir():
            if (place / "build").exists():
                state["built"][place.name] = [version, flavour]
                print(f"Building module nvidia/{version} for {place.name}: done.")
            else:
                print(f"Error! Your kernel headers for kernel {place.name} cannot be found.", file=sys.stderr)
    write(state)
    return 0


def mokutil(state: dict, words: list[str]) -> int:
    if "--sb-state" in words:
        print("SecureBoot enabled" if state["secure_boot"] else "SecureBoot disabled")
    elif "--test-key" in words:
        print(f"{words[-1]} is {'already' if state['enrolled'] else 'not'} enrolled")
    return 0


def update_initramfs(state: dict, dummy: list[str]) -> int:
    text = "\n".join(path.read_text() for path in Path("/etc/modprobe.d").glob("*.conf"))
    state["kept_out"] = re.findall(r"^blacklist (\w+)$", text, re.MULTILINE)
    for name in ("initrd.img-", "initramfs-"):
        (Path("/boot") / f"{name}{os.uname().release}{'.img' if name == 'initramfs-' else ''}").write_text(text)
    write(state)
    return 0


def shutdown(state: dict, dummy: list[str]) -> int:
    boot(state)
    for unit in subprocess.run(
        ["systemctl", "list-unit-files", "--state=enabled", "--no-legend", "nvidia-*", "uses-cards*"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split():
        if unit.endswith(".service"):
            subprocess.run(["systemctl", "restart", "--no-block", unit], check=False)
    return 0


def install() -> None:
    """Put the stand-in in place: mounts over what the real kernel shows, and one link per program."""
    HOME.mkdir(parents=True, exist_ok=True)
    program = HOME / "kernel.py"
    if Path(__file__).resolve() != program:
        program.write_text(Path(__file__).read_text())
    program.chmod(0o755)
    for name in PLAYS:
        place = Path("/usr/sbin") / name
        place.unlink(missing_ok=True)
        place.symlink_to(program)
    Path("/usr/bin/dmesg").unlink(missing_ok=True)
    (HOME / "boot_id").write_text("\n")
    Path("/etc/modprobe.d").mkdir(exist_ok=True)
    for place in ("/proc/driver", "/sys/bus/pci/devices", "/sys/module", "/boot"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "fake-kernel", place], check=True)
    subprocess.run(["mount", "--bind", HOME / "boot_id", "/proc/sys/kernel/random/boot_id"], check=True)
    release = os.uname().release
    Path("/lib/modules", release).mkdir(parents=True, exist_ok=True)
    (Path("/boot") / f"vmlinuz-{release}").touch()
    (Path("/boot") / f"initrd.img-{release}").touch()


def control(state: dict, words: list[str]) -> int:
    if words[0] == "install":
        install()
        boot(state)
    elif words[0] == "boot":
        boot(state | json.loads(words[1]))
    elif words[0] == "set":
        write(state | json.loads(words[1]))
    elif words[0] == "render":
        render(state)
    elif words[0] == "smi":
        print("stand-in nvidia-smi")
    else:
        print(json.dumps(state))
    return 0


def main() -> int:
    name, words, state = Path(sys.argv[0]).name, sys.argv[1:], read()
    if name == "dmesg":
        print("\n".join(state["log"]))
        return 0
    if name == "nvidia-modprobe":
        return modprobe(state, ["nvidia", "nvidia_uvm"])
    played = {
        "modprobe": modprobe,
        "modinfo": modinfo,
        "dkms": dkms,
        "mokutil": mokutil,
        "shutdown": shutdown,
        "update-initramfs": update_initramfs,
        "dracut": update_initramfs,
    }
    return played.get(name, control)(state, words)


if __name__ == "__main__":
    sys.exit(main())
