# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a driver: right steps for every state, and every refusal before anything is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.after import problems
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.facts import Holder, Module, Source
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.names import Package
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.plan import make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.wish import Wish
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from hosts_of_drivers import (
    ALL_BLACKLISTED,
    OPEN_580,
    P40,
    RTX_4090,
    cards,
    done,
    fresh,
    kernel,
    packages,
    ubuntu,
)
from hypothesis import given
from hypothesis import strategies as st

REBOOT = {"reboot_allowed": True}
NOUVEAU = fresh(cards=cards(driver="nouveau"), modules=frozenset({"nouveau"}))


def refused(facts, **wish):
    return [refusal.what for refusal in make_plan(facts, Wish(**{"branch": 580, **wish})).refusals]


def steps(facts, **wish):
    plan = make_plan(facts, Wish(**{"branch": 580, **wish}))
    assert not plan.refusals, [str(refusal) for refusal in plan.refusals]
    return [step.name for step in plan.steps]


def test_a_fresh_host_is_filled_without_a_reboot():
    assert steps(fresh()) == ["blacklist", "install", "load"]


def test_a_host_as_wished_has_nothing_to_do():
    assert steps(done()) == []
    assert problems(done(), make_plan(done(), Wish(580))) == []


@pytest.mark.parametrize(
    ("os_id", "os_version", "source", "branch", "needed"),
    [
        ("debian", "12", "nvidia", 580, {"nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced"}),
        ("ubuntu", "24.04", "nvidia", 580, {"nvidia-dkms-580-open", "libnvidia-compute-580", "nvidia-utils-580"}),
        ("ubuntu", "24.04", "nvidia", 595, {"nvidia-dkms-open", "libnvidia-compute", "nvidia-utils"}),
        ("ubuntu", "24.04", "distribution", 580, {"linux-modules-nvidia-580-server-open-generic", "nvidia-utils-580-server"}),
        ("rocky", "9.6", "nvidia", 580, {"kmod-nvidia-open-dkms", "nvidia-driver-cuda"}),
    ],
)
def test_names_are_those_of_the_platform(os_id, os_version, source, branch, needed):
    facts = fresh(os_id=os_id, os_version=os_version, running=kernel("6.8.0-60-generic"), next=kernel("6.8.0-60-generic"))
    assert needed <= set(make_plan(facts, Wish(branch, source=source)).packages)


def test_toolkit_and_container_toolkit_only_on_request_and_never_a_meta_package_with_a_driver():
    plan = make_plan(fresh(), Wish(580, toolkit="13-0", container_toolkit=True))
    assert plan.extras == ("cuda-nvcc-13-0", "cuda-cudart-dev-13-0", "nvidia-container-toolkit")
    whole = make_plan(fresh(), Wish(580, toolkit="13-0", toolkit_compiler_only=False))
    assert whole.extras == ("cuda-toolkit-13-0",)
    for made in (plan, whole):
        assert not {"cuda", "cuda-13-0", "cuda-drivers"} & {*made.packages, *made.extras}


@pytest.mark.parametrize(("switches", "wish", "wanted"), [(0, "auto", False), (6, "auto", True), (6, "absent", False)])
def test_fabric_manager_exactly_where_nvswitch_is(switches, wish, wanted):
    plan = make_plan(fresh(nvswitches=switches), Wish(580, fabric_manager=wish))
    assert plan.fabric_manager == wanted == ("nvidia-fabricmanager-580" in plan.packages)


# Flavour and branch (R41)


@pytest.mark.parametrize(
    ("facts", "wish", "what"),
    [
        (fresh(), {"flavour": "closed"}, "the closed kernel module does not drive a Blackwell card (10de:2bb5)"),
        (fresh(cards=cards(device_id=P40)), {}, "the open kernel modules do not drive a card from before Turing (10de:1b38)"),
        (fresh(), {"branch": 560, "cuda": "12.6"}, "driver branch 560 does not know a Blackwell card (10de:2bb5)"),
        (fresh(), {"branch": 570}, "driver branch 570 does not run CUDA 13.0"),
        (fresh(cards=cards(device_id=RTX_4090)), {"branch": 615, "flavour": "closed"}, "branch 615 has no closed kernel module"),
        (fresh(), {"toolkit": "13-1"}, "CUDA toolkit 13-1 is newer than the CUDA of driver branch 580"),
        (fresh(os_id="fedora", os_version="42"), {}, "this distribution release is not one that the role installs drivers on"),
        (fresh(), {"source": "distribution"}, "debian itself offers no driver of branch 580"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_installed(facts, wish, what):
    assert what in refused(facts, **wish)


def test_the_closed_flavour_is_taken_where_the_card_allows_it():
    assert steps(fresh(cards=cards(device_id=RTX_4090)), flavour="closed") == ["blacklist", "install", "load"]


def test_a_closed_module_before_is_replaced_with_one_reboot():
    facts = done(packages=packages(names=("nvidia-kernel-dkms", "nvidia-driver-cuda")), loaded=Module("580.95.05", "closed"))
    assert refused(facts) == ["a reboot is needed and not allowed"]
    plan = make_plan(facts, Wish(580, **REBOOT))
    assert plan.removed == ("nvidia-kernel-dkms",)
    assert [step.name for step in plan.steps] == ["remove", "install", "reboot"]


# Other owners (R32, R33)


def test_nouveau_needs_consent_to_a_reboot():
    (what,) = refused(NOUVEAU)
    assert what == "a reboot is needed and not allowed"
    assert steps(NOUVEAU, **REBOOT) == ["blacklist", "install", "reboot"]
    # Under a console it cannot be swapped, whatever was allowed.
    assert refused(NOUVEAU, reload_allowed=True) == ["a reboot is needed and not allowed"]


@pytest.mark.parametrize("driver", ["nova-core", "NovaCore", "nvidiafb"])
def test_other_rivals_too(driver):
    assert make_plan(fresh(cards=cards(driver=driver)), Wish(580, **REBOOT)).way.kind == "reboot"


def test_cards_given_to_a_virtual_machine_are_not_taken_back():
    assert "8 of 8 cards belong to vfio-pci" in refused(fresh(cards=cards(driver="vfio-pci")), **REBOOT)


def test_an_initramfs_older_than_the_blacklist_is_made_again():
    assert steps(done(initramfs_stale=True)) == ["initramfs"]


# Reboot


def test_a_reboot_that_did_not_help_is_not_repeated():
    reason = make_plan(NOUVEAU, Wish(580, **REBOOT)).way.reason
    again = replace(NOUVEAU, packages=packages(), blacklisted=ALL_BLACKLISTED, rebooted_for=reason)
    assert "this host was rebooted for the same reason already, and it did not help" in refused(again, **REBOOT)
    assert not refused(replace(NOUVEAU, rebooted_for="another reason"), **REBOOT)


def test_the_control_host_is_never_rebooted():
    assert refused(replace(NOUVEAU, control_host=True), **REBOOT) == ["this host runs the play and would have to be rebooted"]
    assert steps(fresh(control_host=True)) == ["blacklist", "install", "load"]


@pytest.mark.parametrize(
    ("window", "clock", "inside"),
    [
        ("22:00-04:00", "23:59", True),
        ("22:00-04:00", "00:00", True),
        ("22:00-04:00", "04:00", False),
        ("22:00-04:00", "21:59", False),
        ("01:00-05:00", "01:00", True),
        ("01:00-05:00", "05:00", False),
        ("", "12:00", True),
    ],
)
def test_a_reboot_stays_inside_of_its_window(window, clock, inside):
    minute = int(clock[:2]) * 60 + int(clock[3:])
    said = refused(replace(NOUVEAU, minute_of_day=minute), reboot_window=window, **REBOOT)
    assert said == ([] if inside else [f"a reboot is needed, and {minute // 60:02d}:{clock[3:]} is outside of the window"])


def test_without_a_clock_no_window_is_trusted():
    facts = replace(NOUVEAU, minute_of_day=None)
    assert refused(facts, reboot_window="22:00-04:00", **REBOOT) == [
        "a reboot is needed, and an unknown time is outside of the window"
    ]
    assert refused(facts, **REBOOT) == []


@pytest.mark.parametrize("wrong", [{"reboot_window": "10-4"}, {"reboot_window": "25:00-04:00"}, {"version": "590.44.01"}])
def test_a_wish_that_means_nothing_is_refused(wrong):
    with pytest.raises(InferopsError):
        Wish(580, **wrong)


# Moving a branch (R36, R37)


def test_another_branch_moves_the_whole_set_at_once():
    plan = make_plan(done(), Wish(590, **REBOOT))
    assert not plan.refusals and plan.moved == tuple(sorted(package.name for package in packages()))
    assert [step.name for step in plan.steps] == ["move", "reboot"] and plan.spec == "590.*"
    assert refused(done(), branch=590) == ["a reboot is needed and not allowed"]
    assert make_plan(done(), Wish(590, reload_allowed=True)).way.kind == "reload"


def test_the_version_lock_names_one_version_of_each_package():
    """On the RHEL family; a list that holds two versions lets the upgrade pass."""
    rpm = packages("580.95.05-1.el9", names=("kmod-nvidia-open-dkms", "nvidia-driver-cuda"))
    plan = make_plan(done(os_id="rocky", os_version="9.6", packages=rpm), Wish(580))
    assert plan.lock == ("kmod-nvidia-open-dkms-580.95.05-1.el9.*", "nvidia-driver-cuda-580.95.05-1.el9.*")


def test_packages_with_a_branch_in_their_names_are_replaced_by_those_of_the_other_branch():
    old = packages("580.95.05-0ubuntu1", names=("nvidia-dkms-580-open", "libnvidia-compute-580"))
    plan = make_plan(ubuntu(done(packages=old)), Wish(595, **REBOOT))
    assert plan.removed == ("libnvidia-compute-580", "nvidia-dkms-580-open") and plan.moved == ()
    assert "nvidia-dkms-open" in plan.packages and plan.way.kind == "reboot"


def test_a_fabric_manager_without_a_fabric_is_removed():
    facts = done(
        packages=packages(names=("nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-fabricmanager"))
    )
    assert make_plan(facts, Wish(580)).removed == ("nvidia-fabricmanager",)
    assert steps(facts) == ["remove"], "the module stays, so there is nothing to reboot for"
    assert make_plan(replace(facts, nvswitches=6), Wish(580)).removed == ()


def test_a_newer_point_release_is_left_alone_unless_it_was_asked_for():
    assert steps(done(), version="") == []
    assert steps(done(), version="580.95.05") == []
    assert steps(done(), version="580.82.07", **REBOOT) == ["move", "reboot"]


def test_packages_ahead_of_the_module_want_a_reboot_and_nothing_else():
    """R37: an upgrade moved user space, the old module is still in the kernel."""
    built = kernel(module=Module("580.126.09", "open"))
    facts = done(packages=packages("580.126.09-1"), running=built, next=built)
    assert refused(facts) == ["a reboot is needed and not allowed"]
    assert steps(facts, **REBOOT) == ["reboot"]
    assert any("still due" in note for note in make_plan(facts, Wish(580)).notes)
    assert any("packages are of 580.126.09-1" in said for said in problems(facts, make_plan(facts, Wish(580))))


def test_a_set_that_was_moved_in_part_is_brought_together():
    """R36: part of the set moved behind the role's back."""
    mixed = (
        *packages(names=("nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced")),
        Package("libcuda1", "580.126.09-1"),
    )
    plan = make_plan(done(packages=mixed), Wish(580, **REBOOT))
    assert plan.spec == "580.126.09-*"
    assert plan.moved == ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced")


def test_what_is_not_held_gets_held():
    facts = done(
        packages=(
            *packages(held=False),
            Package("cuda-toolkit-13-0", "13.0.2-1"),
            Package("nvidia-container-toolkit", "1.18.0-1"),
        )
    )
    (step,) = make_plan(facts, Wish(580)).steps
    assert (step.name, step.items) == ("hold", tuple(sorted(package.name for package in packages())))


# Headers, Secure Boot, space, sources


def test_headers_come_first_or_nothing_does():
    assert steps(fresh(running=kernel(headers=False, offered=True), next=kernel(headers=False, offered=True)))[0] == "headers"
    for offered in (False, None):
        nothing = kernel(headers=False, offered=offered)
        assert any("headers of kernel 6.1.0-40-amd64" in what for what in refused(fresh(running=nothing, next=nothing)))


def test_the_kernel_to_be_booted_needs_headers_only_where_a_reboot_is_due():
    coming = kernel("6.1.0-41-amd64", headers=False, offered=False)
    assert refused(fresh(next=coming)) == []
    assert any("6.1.0-41-amd64" in what for what in refused(replace(NOUVEAU, next=coming), **REBOOT))


def test_a_kernel_that_came_after_the_driver_gets_its_module():
    assert steps(done(running=kernel("6.1.0-41-amd64"), next=kernel("6.1.0-41-amd64"))) == ["build"]
    coming = done(next=kernel("6.1.0-41-amd64"), packages=packages("580.126.09-1"))
    assert steps(coming, **REBOOT) == ["build", "reboot"]


@pytest.mark.parametrize(
    ("enrolled", "said"),
    [
        (True, None),
        (False, "Secure Boot is on and the key that would sign the module is not enrolled"),
        (None, "Secure Boot is on and the key that would sign the module is not there"),
    ],
)
def test_secure_boot_and_a_module_nobody_signed(enrolled, said):
    """R48: instructions instead of a reboot into a dead host."""
    facts = fresh(secure_boot=True, key_enrolled=enrolled)
    assert refused(facts) == ([] if said is None else [said])
    signed = replace(ubuntu(facts), running=kernel("6.8.0-60-generic"), next=kernel("6.8.0-60-generic"))
    assert refused(signed, source="distribution") == []


@pytest.mark.parametrize(("place", "facts"), [("/boot", {"boot_free_mib": 100}), ("/", {"root_free_mib": 1000})])
def test_no_space(place, facts):
    assert any(what.startswith(f"{place} has") for what in refused(fresh(**facts)))
    assert refused(done(**facts)) == []
    assert refused(fresh(boot_free_mib=None, root_free_mib=None)) == []


def test_packages_of_another_maker_are_never_mixed_in():
    canonical = (Package("nvidia-utils-580-server", "580.126.09-0ubuntu0.24.04.1"),)
    assert any("another maker" in what for what in refused(ubuntu(fresh(packages=canonical))))
    assert not any("another maker" in what for what in refused(ubuntu(fresh(packages=canonical)), source="distribution"))
    debian = (Package("nvidia-driver", "535.261.03-1~deb12u1"),)
    assert any("another maker" in what for what in refused(fresh(packages=debian)))
    assert not any("another maker" in what for what in refused(ubuntu(fresh(packages=packages("580.95.05-0ubuntu1")))))


@pytest.mark.parametrize(
    ("source", "mixed"),
    [
        (
            Source(
                "/etc/apt/sources.list.d/cuda.list", "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"
            ),
            True,
        ),
        (Source("/etc/apt/sources.list.d/ppa.sources", "https://ppa.launchpadcontent.net/graphics-drivers/ppa/ubuntu"), True),
        (
            Source(
                "/etc/apt/sources.list.d/inferops-nvidia.sources", "https://developer.download.nvidia.com/compute/cuda/repos/x/"
            ),
            False,
        ),
        (Source("/etc/apt/sources.list", "https://mirror.example.com/debian"), False),
    ],
)
def test_a_second_source_is_refused_by_the_name_of_its_file(source, mixed):
    refusals = make_plan(fresh(sources=(source,)), Wish(580)).refusals
    assert bool(refusals) == mixed and all(source.file in str(refusal) for refusal in refusals)


# Holders (R95)


def test_what_holds_the_cards_is_stopped_with_consent_or_named():
    served = done(
        holders=(
            Holder(41, "python -m sglang.launch_server", "sglang-kimi.service"),
            Holder(7, "p", "nvidia-persistenced.service"),
        )
    )
    (refusal,) = make_plan(served, Wish(590, **REBOOT)).refusals
    assert "41 python -m sglang.launch_server of sglang-kimi.service" in str(refusal) and "nvidia-persistenced" not in str(
        refusal
    )
    assert refused(served, branch=590, stop_units=("sglang-kimi.service",), **REBOOT) == []
    assert refused(served) == []
    by_hand = replace(served, holders=(Holder(42, "python bench.py"),))
    assert any("42 python bench.py" in what for what in refused(by_hand, branch=590, stop_units=("",) * 0, **REBOOT))


def test_what_was_interrupted_is_repaired_first():
    assert steps(fresh(half_done=("nvidia-kernel-open-dkms",)))[0] == "repair"


# After


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"nodes": frozenset({"nvidiactl", *(f"nvidia{index}" for index in range(8))})},
            "device nodes are not there: /dev/nvidia-uvm",
        ),
        ({"cards": (*cards(7, driver="nvidia"), cards()[7])}, "the module did not take these cards: 0000:08:00.0"),
    ],
)
def test_what_nvidia_smi_alone_would_not_show(changes, said):
    """R94: the uvm node is part of a driver that works."""
    facts = done(**changes)
    assert problems(facts, make_plan(facts, Wish(580))) == [said]


# Laws

BRANCHES = st.sampled_from([560, 570, 580, 590, 595, 615])
WISHES = st.builds(
    Wish,
    branch=BRANCHES,
    flavour=st.sampled_from(["open", "closed"]),
    source=st.sampled_from(["nvidia", "mirror", "offline", "distribution"]),
    full=st.booleans(),
    reboot_allowed=st.booleans(),
    reload_allowed=st.booleans(),
    toolkit=st.sampled_from(["", "13-0", "13-1"]),
)
LOADED = st.sampled_from([None, OPEN_580, Module("580.95.05", "closed"), Module("570.86.10", "open"), Module("590.44.01", None)])
HOSTS = st.builds(
    fresh,
    os_id=st.sampled_from(["debian", "ubuntu", "rocky", "fedora"]),
    os_version=st.sampled_from(["12", "13", "24.04", "9.6", "10"]),
    cards=st.sampled_from(
        [(), cards(), cards(device_id=RTX_4090), cards(driver="nouveau"), cards(driver="vfio-pci"), cards(driver="nvidia")]
    ),
    loaded=LOADED,
    packages=st.sampled_from(
        [(), packages(), packages("570.86.10-1"), packages(names=("nvidia-kernel-dkms", "libcuda1"), held=False)]
    ),
    secure_boot=st.sampled_from([True, False, None]),
    control_host=st.booleans(),
    root_free_mib=st.sampled_from([10, 50_000, None]),
    running=st.sampled_from([kernel(), kernel(headers=False, offered=True), kernel(headers=False)]),
    holders=st.sampled_from([(), (Holder(1, "x"),)]),
)


@given(HOSTS, WISHES)
def test_no_plan_breaks_a_promise(facts, wish):
    plan = make_plan(facts, wish)
    if not plan.refusals:
        if plan.way.kind == "reboot":
            assert wish.reboot_allowed and not facts.control_host
        if plan.way.kind in {"reboot", "reload"}:
            assert not facts.holders
        if wish.flavour == "closed":
            assert not any(card.device_id == 0x2BB5 for card in facts.cards)
        assert not any(card.driver == "vfio-pci" for card in facts.cards)
    for refusal in plan.refusals:
        assert set(refusal.details) == {"where", "why", "do"}
    assert plan.as_dict() == make_plan(facts, wish).as_dict()


@given(HOSTS, WISHES)
def test_more_consent_never_refuses_more(facts, wish):
    less = {str(refusal) for refusal in make_plan(facts, replace(wish, reboot_allowed=False)).refusals}
    more = {str(refusal) for refusal in make_plan(facts, replace(wish, reboot_allowed=True)).refusals}
    assert more <= less
