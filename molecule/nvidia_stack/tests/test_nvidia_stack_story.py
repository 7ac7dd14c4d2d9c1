"""The driver's story: refusals touch nothing, one reboot at most, the hold holds, branches move, what was cut off is healed."""

import json
import re

import pytest


def state(kept, name):
    (line,) = [line for line in (kept / f"{name}.on").read_text().splitlines() if line.startswith("{")]
    return json.loads(line)


def told(kept, name):
    """What a play printed, without the line ends of its output format."""
    return " ".join((kept / f"{name}.log").read_text().split())


def versions(kept, name):
    return set(re.findall(r"^\S+\t(\d{3}\.\S+)$", (kept / f"{name}.on").read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("refused", r"the closed kernel module does not drive a Blackwell card \(10de:2bb5\)"),
        ("refused", r"the headers of kernel \S+ are not there, and no package source offers"),
        ("refused", r"Secure Boot is on and the key that would sign the module is not there"),
        ("refused", r"a reboot is needed and not allowed where: nvidia_stack_reboot_allowed why: nouveau has the cards"),
        ("refused", r"nothing was changed on story-nvidia-stack"),
        ("bad_checksum", r"DRV-BAD-KEY: the key of the package source is not the expected one"),
        ("unreachable", r"DRV-SOURCE-UNREACHABLE: the package source does not answer"),
        ("cut_off", r"the driver was not installed on story-nvidia-stack: Packages \| Install or move the whole set at once"),
        ("healed", r"repair: .*nvidia-kernel-open-dkms.* \(an earlier run of the package manager did not end\)"),
        ("healed", r"reboot: 580 \(nouveau has the cards"),
        (
            "no_cuda",
            r"CUDA does not work on 2 of 2 cards where: story-nvidia-stack: GPU-51a7\S+0, GPU-51a7\S+1 why: cuMemAlloc",
        ),
        ("holder", r"1 processes have cards open: \d+ /usr/bin/python3 .* of uses-cards\.service"),
        ("holder", r"a reboot is needed and not allowed"),
    ],
)
def test_the_message_names(kept, name, says):
    """R32, R33, R41, R48, R94, R95."""
    assert re.search(says, told(kept, name))


def test_a_refusal_leaves_nothing(kept):
    left = (kept / "after_refused.on").read_text()
    assert "inferops" not in left and "no packages found matching nvidia" in left


def test_a_source_that_was_never_read_is_taken_back(kept):
    assert "inferops" not in (kept / "after_unreachable.on").read_text()


def test_check_mode_predicts_everything_and_touches_nothing(kept):
    log = told(kept, "check")
    for step in ("headers: linux-headers-", "blacklist: nouveau", "install: nvidia-kernel-open-dkms", "reboot: 580"):
        assert step in log
    assert "failed=0" in log and re.search(r"changed=[1-9]", log)


def test_what_was_cut_off_was_really_half_done(kept):
    assert "nvidia-kernel-open-dkms" in (kept / "after_cut_off.on").read_text().partition("{")[0]
    assert state(kept, "after_cut_off")["bound"] == "nouveau"


def test_it_was_healed_with_one_reboot_and_nouveau_is_gone(kept):
    """R32."""
    before, after = state(kept, "after_cut_off"), state(kept, "after_healed")
    assert after["boots"] == before["boots"] + 1
    assert (after["bound"], after["loaded"]) == ("nvidia", ["580.95.05", "open"])
    assert after["uvm"], "R94: the uvm node is there after the reboot"


def test_the_second_run_changes_nothing(kept):
    assert "changed=0" in (kept / "again.log").read_text()


def test_the_hold_and_the_pin_withstand(kept):
    """R36: neither a whole upgrade, nor a meta package, nor a package let loose moves the branch."""
    said = (kept / "attack.on").read_text()
    assert not re.search(r"^(Unpacking|Setting up) .*590\.", said, re.MULTILINE)
    assert 'Unattended-Upgrade::Package-Blacklist:: "^libnvidia-";' in said


def test_a_branch_goes_up_with_one_reboot_and_the_engine_comes_back(kept):
    before, after = state(kept, "after_healed"), state(kept, "after_upgrade")
    assert after["boots"] == before["boots"] + 1 and after["loaded"] == ["590.44.01", "open"]
    assert versions(kept, "after_upgrade") == {"590.44.01-1"}
    assert (kept / "after_upgrade.on").read_text().split()[-2:] == ["active", "active"]


def test_a_branch_goes_down_to_one_version_without_a_reboot(kept):
    before, after = state(kept, "after_upgrade"), state(kept, "after_downgrade")
    assert after["boots"] == before["boots"] and after["loaded"] == ["580.82.07", "open"]
    assert versions(kept, "after_downgrade") == {"580.82.07-1"}
    assert (kept / "after_downgrade.on").read_text().split()[-2:] == ["active", "active"]


def test_the_closed_flavour_was_replaced(kept):
    assert "remove: nvidia-kernel-dkms" in told(kept, "closed_before")
    assert state(kept, "after_closed")["loaded"] == ["580.82.07", "open"]


def test_the_host_is_as_wished_now(host):
    assert host.file("/sys/module/nvidia/version").content_string.strip() == "580.82.07"
    held = host.check_output("apt-mark showhold").split()
    assert {"nvidia-kernel-open-dkms", "nvidia-driver-cuda", "libcuda1", "libnvidia-ml1", "nvidia-persistenced"} <= set(held)
    assert {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"} == set(host.check_output("ls /dev | grep ^nvidia").split())
    assert host.service("nvidia-persistenced").is_running and host.service("nvidia-persistenced").is_enabled
    assert not host.file("/var/lib/inferops/nvidia_stack.reboot").exists
