# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads what a host is: files below a root, and a few programs that only tell. The edge of the plan; changes nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .facts import Card, Facts, Holder, Kernel, Module, Source
from .names import Package, belongs, family, headers_package
from .space import free_mib
from .way import RIVALS

# Status and output of a program; a program that is not there has status 127.
Run = Callable[[Sequence[str]], "tuple[int, str]"]
EXTRAS = re.compile(r"^(cuda-|nvidia-container-toolkit)")
KEYS = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub")
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
BLACKLIST = "etc/modprobe.d/inferops-nvidia.conf"
REBOOTED = "var/lib/inferops/nvidia_stack.reboot"
NVIDIA = 0x10DE


def read_facts(run: Run, *, root: Path = Path("/"), controller_boot_id: str = "", now: time.struct_time | None = None) -> Facts:
    """Return the facts of this host."""
    release = _os_release(root)
    os_id = release.get("ID", "unknown")
    running = run(["uname", "-r"])[1].strip()
    following = _next_kernel(root, running)
    packages, half_done = _packages(run, root, os_id)
    cards, switches = _pci(root)
    boot_id = _text(root / "proc/sys/kernel/random/boot_id")
    clock = now or time.localtime()
    this = _kernel(run, root, os_id, running)
    return Facts(
        os_id=os_id,
        os_version=release.get("VERSION_ID", ""),
        arch=run(["uname", "-m"])[1].strip(),
        running=this,
        next=this if following == running else _kernel(run, root, os_id, following),
        cards=cards,
        loaded=_loaded(root),
        modules=frozenset(module for module in RIVALS if (root / "sys/module" / module).is_dir()),
        blacklisted=_blacklisted(root),
        packages=packages,
        half_done=half_done,
        sources=tuple(_sources(root)),
        holders=tuple(_holders(root)),
        nodes=frozenset(path.name for path in (root / "dev").glob("nvidia*")),
        secure_boot=_secure_boot(run, root),
        key_enrolled=_key_enrolled(run, root),
        boot_free_mib=free_mib(root / "boot", unless_on=root),
        root_free_mib=free_mib(root),
        nvswitches=switches,
        control_host=bool(controller_boot_id) and controller_boot_id == boot_id,
        minute_of_day=clock.tm_hour * 60 + clock.tm_min,
        initramfs_stale=_initramfs_stale(root, following),
        rebooted_for=_rebooted_for(root, boot_id),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _os_release(root: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in _text(root / "etc/os-release").splitlines())
    return {key: value.strip().strip('"') for key, dummy, value in pairs}


def _next_kernel(root: Path, running: str) -> str:
    """Return the newest kernel that has an image in /boot, which is what boot loaders take; else the running one."""
    found = {path.name.partition("-")[2] for path in (root / "boot").glob("vmlinuz-*")}
    kernels = [name for name in found if (root / "lib/modules" / name).is_dir()]
    return max(kernels, key=_by_version, default=running)


def _by_version(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _kernel(run: Run, root: Path, os_id: str, release: str) -> Kernel:
    headers = (root / "lib/modules" / release / "build").exists()
    module = None
    status, version = run(["modinfo", "-k", release, "-F", "version", "nvidia"])
    if status == 0 and version.strip():
        licence = run(["modinfo", "-k", release, "-F", "license", "nvidia"])[1]
        module = Module(version.strip(), "open" if "GPL" in licence else "closed")
    return Kernel(release, headers, None if headers else _offered(run, os_id, release), module)


def _offered(run: Run, os_id: str, release: str) -> bool | None:
    """Say whether a package source has the headers of a kernel; None where nobody can be asked."""
    name = headers_package(os_id, release)
    if family(os_id) == "apt":
        status, said = run(["apt-cache", "policy", name])
        return None if status == 127 else re.search(r"Candidate: (?!\(none\))\S", said) is not None
    status, said = run(["dnf", "-q", "list", "--available", name])
    return None if status == 127 else status == 0


def _packages(run: Run, root: Path, os_id: str) -> tuple[tuple[Package, ...], tuple[str, ...]]:
    if family(os_id) == "dnf":
        said = run(["rpm", "-qa", "--qf", "%{NAME}\t%{VERSION}-%{RELEASE}\n"])[1]
        locked = _text(root / "etc/dnf/plugins/versionlock.list")
        rows = [line.split("\t") for line in said.splitlines() if line.count("\t") == 1]
        kept = [Package(name, version, _locked(locked, name, version)) for name, version in rows]
        return tuple(p for p in kept if belongs(p.name) or EXTRAS.match(p.name)), ()
    said = run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n"])[1]
    found, half = [], []
    for name, version, want, status in (line.split("\t") for line in said.splitlines() if line.count("\t") == 3):
        if status not in {"installed", "config-files", "not-installed"}:
            half.append(name)
        elif status == "installed" and (belongs(name) or EXTRAS.match(name)):
            found.append(Package(name, version, want == "hold"))
    if not half and any((root / "var/lib/dpkg/updates").glob("[0-9]*")):
        half.append("dpkg")
    return tuple(found), tuple(half)


def _locked(text: str, name: str, version: str) -> bool:
    """Say whether the version lock names this version of a package; another version there holds nothing."""
    return re.search(rf"^{re.escape(name)}-(\d+:)?{re.escape(version)}\.", text, re.MULTILINE) is not None


def _pci(root: Path) -> tuple[tuple[Card, ...], int]:
    """Return the cards, and how many NVSwitches there are."""
    cards, switches = [], 0
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor, kind, number = (_text(device / name) for name in ("vendor", "class", "device"))
        if not vendor or int(vendor, 16) != NVIDIA:
            continue
        if kind.startswith(("0x0300", "0x0302")):
            driver = device / "driver"
            cards.append(Card(device.name, int(number, 16), driver.resolve().name if driver.is_symlink() else None))
        elif kind.startswith("0x0680"):
            switches += 1
    return tuple(cards), switches


def _loaded(root: Path) -> Module | None:
    version = _text(root / "sys/module/nvidia/version")
    if not version:
        return None
    said = _text(root / "proc/driver/nvidia/version")
    return Module(version, None if not said else "open" if "Open Kernel Module" in said else "closed")


def _blacklisted(root: Path) -> frozenset[str]:
    files = (
        path for folder in ("etc/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d") for path in (root / folder).glob("*.conf")
    )
    text = "\n".join(_text(path) for path in files)
    return frozenset(module for module in RIVALS if re.search(rf"^\s*blacklist\s+{module}\s*$", text, re.MULTILINE))


def _sources(root: Path) -> list[Source]:
    """Return the enabled package sources of apt and dnf."""
    found = []
    apt = root / "etc/apt"
    for file in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))):
        for uri in re.findall(r"^\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)", _text(file), re.MULTILINE):
            found.append(Source("/" + str(file.relative_to(root)), uri))
    for file in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", _text(file)):
            if re.search(r"^Enabled:\s*no", stanza, re.MULTILINE | re.IGNORECASE) is None:
                uris = re.search(r"^URIs:\s*(.+)$", stanza, re.MULTILINE)
                found += [Source("/" + str(file.relative_to(root)), uri) for uri in (uris.group(1).split() if uris else ())]
    for file in sorted((root / "etc/yum.repos.d").glob("*.repo")):
        for section in re.split(r"^(?=\[)", _text(file), flags=re.MULTILINE):
            if re.search(r"^enabled\s*=\s*0", section, re.MULTILINE) is None:
                bases = re.findall(r"^baseurl\s*=\s*(\S+)", section, re.MULTILINE)
                found += [Source("/" + str(file.relative_to(root)), uri) for uri in bases]
    return found


def _holders(root: Path) -> list[Holder]:
    """Return the processes that have a device node of a card open, as far as this user may see."""
    found = []
    for process in sorted((root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            held = any(str(link.readlink()).startswith("/dev/nvidia") for link in (process / "fd").iterdir())
        except OSError:  # it ended, or is not ours to see
            continue
        if held:
            units = re.findall(r"([^/\n]+\.(?:service|scope))", _text(process / "cgroup"))
            unit = next((name for name in reversed(units) if name.endswith(".service")), "")
            command = _text(process / "cmdline").replace("\0", " ").strip() or _text(process / "comm")
            found.append(Holder(int(process.name), command[:80], unit))
    return found


def _secure_boot(run: Run, root: Path) -> bool | None:
    status, said = run(["mokutil", "--sb-state"])
    if status == 0 and "SecureBoot" in said:
        return "SecureBoot enabled" in said
    try:
        return (root / SECURE_BOOT).read_bytes()[-1:] == b"\x01"
    except OSError:
        return None if (root / "sys/firmware/efi").is_dir() else False


def _key_enrolled(run: Run, root: Path) -> bool | None:
    """Say whether the firmware knows the key that DKMS signs with; None where there is no such key."""
    keys = [str(root / key) for key in KEYS if (root / key).is_file()]
    return any("already enrolled" in run(["mokutil", "--test-key", key])[1] for key in keys) if keys else None


def _initramfs_stale(root: Path, kernel: str) -> bool:
    """Say whether the initramfs is older than the blacklist, as after a run that was cut short between the two."""
    images = [root / "boot" / name for name in (f"initrd.img-{kernel}", f"initramfs-{kernel}.img")]
    made = [image.stat().st_mtime for image in images if image.is_file()]
    listed = root / BLACKLIST
    return bool(made) and listed.is_file() and max(made) < listed.stat().st_mtime


def _rebooted_for(root: Path, boot_id: str) -> str | None:
    """Return what the role rebooted this host for, where that reboot has happened."""
    before, dummy, reason = _text(root / REBOOTED).partition("\n")
    return reason.strip() if reason and before.strip() != boot_id else None
