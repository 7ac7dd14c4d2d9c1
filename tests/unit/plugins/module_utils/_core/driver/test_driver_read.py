# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is read of a host: a tree of files and what a few programs print."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver import read
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.facts import Card, Module, Source

DEVICE = {"vendor": "0x10de", "class": "0x030200", "device": "0x2bb5"}
NOON = time.struct_time((2026, 12, 3, 12, 30, 0, 3, 337, 0))


class Programs:
    """What programs of the host print; one that is not named is not there."""

    def __init__(self, **said):
        self.said = {
            "uname -r": "6.1.0-40-amd64",
            "uname -m": "x86_64",
            **{key.replace("_", "-"): value for key, value in said.items()},
        }

    def __call__(self, argv):
        words = " ".join(argv)
        for key, value in self.said.items():
            if words.startswith(key):
                return (0, value)
        return (127, "")


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    write(tmp_path, "proc/sys/kernel/random/boot_id", "b1\n")
    write(tmp_path, "lib/modules/6.1.0-40-amd64/build", "")
    return tmp_path


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def card(root, address, driver=None, **changes):
    for name, text in {**DEVICE, **changes}.items():
        write(root, f"sys/bus/pci/devices/{address}/{name}", text + "\n")
    if driver:
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (root / f"sys/bus/pci/devices/{address}/driver").symlink_to(root / "sys/bus/pci/drivers" / driver)


def facts(root, programs=None, **more):
    return read.read_facts(programs or Programs(), root=root, now=NOON, **more)


def test_cards_switches_and_who_has_them(root):
    card(root, "0000:01:00.0", driver="nouveau")
    card(root, "0000:02:00.0")
    card(root, "0000:02:00.1", **{"class": "0x040300"})
    card(root, "0000:05:00.0", **{"class": "0x068000"})
    card(root, "0000:00:02.0", vendor="0x8086", **{"class": "0x030000"})
    found = facts(root)
    assert found.cards == (Card("0000:01:00.0", 0x2BB5, "nouveau"), Card("0000:02:00.0", 0x2BB5, None))
    assert found.nvswitches == 1


@pytest.mark.parametrize(
    ("said", "flavour"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "open"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23", "closed"),
        (None, None),
    ],
)
def test_the_module_in_the_kernel(root, said, flavour):
    assert facts(root).loaded is None
    write(root, "sys/module/nvidia/version", "580.95.05\n")
    if said:
        write(root, "proc/driver/nvidia/version", said)
    assert facts(root).loaded == Module("580.95.05", flavour)


def test_the_module_on_disk_and_its_flavour(root):
    for licence, flavour in (("Dual MIT/GPL", "open"), ("NVIDIA", "closed")):
        said = {"modinfo -k 6.1.0-40-amd64 -F version": "580.95.05\n", "modinfo -k 6.1.0-40-amd64 -F license": licence}
        programs = Programs()
        programs.said.update(said)
        assert facts(root, programs).running.module == Module("580.95.05", flavour)
    assert facts(root).running.module is None


def test_a_rival_that_is_loaded_or_built_in(root):
    (root / "sys/module/nouveau").mkdir(parents=True)
    (root / "sys/module/nvidia_uvm").mkdir()
    assert facts(root).modules == {"nouveau"}


def test_packages_holds_and_what_is_half_done(root):
    rows = (
        "nvidia-kernel-open-dkms\t580.95.05-1\thold\tinstalled\n"
        "libcuda1\t580.95.05-1\tinstall\thalf-configured\n"
        "cuda-toolkit-13-0\t13.0.2-1\tinstall\tinstalled\n"
        "bash\t5.2\tinstall\tinstalled\nnvidia-old\t1\tdeinstall\tconfig-files\n"
    )
    found = facts(root, Programs(dpkg_query=rows))
    assert [(package.name, package.held) for package in found.packages] == [
        ("nvidia-kernel-open-dkms", True),
        ("cuda-toolkit-13-0", False),
    ]
    assert found.half_done == ("libcuda1",)
    write(root, "var/lib/dpkg/updates/0001", "")
    assert facts(root, Programs(dpkg_query="")).half_done == ("dpkg",)


def test_rpm_packages_and_their_version_lock(root):
    write(root, "etc/os-release", "ID=rocky\nVERSION_ID=9.6\n")
    write(root, "etc/dnf/plugins/versionlock.list", "nvidia-driver-cuda-3:580.95.05-1.el9.*\nnvidia-driver-3:580.82.07-1.el9.*\n")
    said = (
        "nvidia-driver-cuda\t580.95.05-1.el9\nnvidia-driver\t580.95.05-1.el9\nkmod-nvidia-open-dkms\t580.95.05-1.el9\nbash\t5-1\n"
    )
    assert [(p.name, p.held) for p in facts(root, Programs(rpm=said)).packages] == [
        ("nvidia-driver-cuda", True),
        ("nvidia-driver", False),
        ("kmod-nvidia-open-dkms", False),
    ]


def test_sources_that_are_enabled(root):
    write(
        root,
        "etc/apt/sources.list.d/a.list",
        "# deb https://off/ x main\ndeb [arch=amd64 signed-by=/k] https://on.list/ x main\n",
    )
    write(
        root,
        "etc/apt/sources.list.d/b.sources",
        "Types: deb\nURIs: https://one/ https://two/\n\nEnabled: no\nURIs: https://off/\n",
    )
    write(root, "etc/yum.repos.d/c.repo", "[x]\nbaseurl=https://rpm/\nenabled=1\n[y]\nbaseurl=https://off/\nenabled=0\n")
    listed, one, two, rpm = facts(root).sources
    assert listed == Source("/etc/apt/sources.list.d/a.list", "https://on.list/")
    assert (one.uri, two.uri, rpm.uri) == ("https://one/", "https://two/", "https://rpm/")


@pytest.mark.parametrize(
    ("said", "offered"), [("Candidate: 6.1.1", True), ("Candidate: (none)", False), ("", False), (None, None)]
)
def test_headers_and_whether_anybody_offers_them(root, said, offered):
    assert facts(root).running.headers and facts(root).running.headers_offered is None
    build = root / "lib/modules/6.1.0-40-amd64/build"
    build.unlink()
    build.symlink_to("/usr/src/not-there")  # what a removed package of headers leaves
    programs = Programs() if said is None else Programs(apt_cache=said)
    found = facts(root, programs).running
    assert (found.headers, found.headers_offered) == (False, offered)


def test_the_kernel_booted_next_is_the_newest_one_with_an_image(root):
    for name in ("6.1.0-9-amd64", "6.1.0-41-amd64", "6.1.0-100-amd64"):
        write(root, f"boot/vmlinuz-{name}", "")
    write(root, "lib/modules/6.1.0-9-amd64/x", "")
    write(root, "lib/modules/6.1.0-41-amd64/x", "")
    found = facts(root)
    assert (found.running.release, found.next.release) == ("6.1.0-40-amd64", "6.1.0-41-amd64")


@pytest.mark.parametrize(("said", "state"), [("SecureBoot enabled", True), ("SecureBoot disabled", False)])
def test_secure_boot_by_mokutil(root, said, state):
    programs = Programs()
    programs.said["mokutil --sb-state"] = said
    assert facts(root, programs).secure_boot is state


def test_secure_boot_by_the_firmware_where_mokutil_is_not_there(root):
    assert facts(root).secure_boot is False
    (root / "sys/firmware/efi").mkdir(parents=True)
    assert facts(root).secure_boot is None
    path = write(root, read.SECURE_BOOT, "")
    for byte, state in ((b"\x01", True), (b"\x00", False)):
        path.write_bytes(b"\x06\x00\x00\x00" + byte)
        assert facts(root).secure_boot is state


def test_whether_the_key_of_dkms_is_known(root):
    assert facts(root).key_enrolled is None
    write(root, "var/lib/dkms/mok.pub", "")
    for said, state in (("mok.pub is already enrolled", True), ("mok.pub is not enrolled", False)):
        programs = Programs()
        programs.said["mokutil --test-key"] = said
        assert facts(root, programs).key_enrolled is state


def test_a_process_with_a_card_open_is_seen_with_its_command(tmp_path):
    """The process is real; its device node is a link, since this machine has no card."""
    (tmp_path / "proc").mkdir()
    with subprocess.Popen([sys.executable, "-uc", "print(1); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        folder = tmp_path / "proc" / str(process.pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to("/dev/nvidia0")
        for name in ("cmdline", "comm"):
            (folder / name).write_bytes(Path(f"/proc/{process.pid}/{name}").read_bytes())
        (folder / "cgroup").write_text("0::/system.slice/sglang-kimi.service\n")
        (holder,) = facts(tmp_path).holders
        assert (holder.pid, holder.unit) == (process.pid, "sglang-kimi.service")
        assert "input()" in holder.command
        process.communicate(b"\n")


def test_blacklists_and_an_initramfs_that_is_older(root):
    assert facts(root).blacklisted == frozenset() and not facts(root).initramfs_stale
    listed = write(root, read.BLACKLIST, "blacklist nouveau\nblacklist nova_core\n# blacklist nova\n")
    image = write(root, "boot/initrd.img-6.1.0-40-amd64", "")
    os.utime(image, (1, 1))
    found = facts(root)
    assert found.blacklisted == {"nouveau", "nova_core"} and found.initramfs_stale
    os.utime(listed, (1, 1))
    assert not facts(root).initramfs_stale


def test_what_it_was_rebooted_for_counts_once_that_reboot_has_happened(root):
    write(root, read.REBOOTED, "b1\nnouveau has the cards\n")
    assert facts(root).rebooted_for is None
    write(root, read.REBOOTED, "b0\nnouveau has the cards\n")
    assert facts(root).rebooted_for == "nouveau has the cards"


def test_the_control_host_is_known_by_its_boot(root):
    assert facts(root, controller_boot_id="b1").control_host
    assert not facts(root, controller_boot_id="b2").control_host
    assert not facts(root, controller_boot_id="").control_host


def test_the_clock_and_free_space(root):
    found = facts(root)
    assert found.minute_of_day == 12 * 60 + 30 and found.root_free_mib is not None
    assert found.boot_free_mib is None


def test_nothing_of_a_bare_machine_stops_the_reading(tmp_path):
    found = read.read_facts(lambda argv: (127, ""), root=tmp_path)
    assert found.os_id == "unknown" and found.cards == () and found.loaded is None


def test_the_reading_runs_on_the_python_of_enterprise_linux_9():
    """Facts come from the host's own Python, 3.9 there."""
    for path in Path(read.__file__).parent.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))
