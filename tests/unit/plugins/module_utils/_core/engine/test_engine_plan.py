# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything that is in the way is said at once, before anything is touched."""

from __future__ import annotations

import os
import sys

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine import floors as floor
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.host import (
    Place,
    ask_interpreter,
    driver_version,
    look_at,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.launch import launch_words
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.lock import read_lock
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.plan import make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.wheels import in_folder, parse_wheel
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import interpreter, lock_of, make_wheel, wanted

GIB = 1024**3


def problems(check, *args, **kwargs):
    floors = floor.Floors()
    check(floors, *args, **kwargs)
    return " | ".join(why for why, dummy in floors.problems)


def some_lock(version="0.5.23", head="", more=""):
    return read_lock(f"{head}\nsglang=={version} --hash=sha256:aa\n{more}", version, "lock")


@pytest.mark.parametrize(
    ("version", "python", "says"),
    [
        ("0.5.23", (3, 10, 12), ">=3.11 is needed"),
        ("0.5.23", (3, 11, 0), ""),
        ("0.5.12", (3, 10, 12), ""),
        ("0.5.12", (3, 9, 1), ">=3.10 is needed"),
        ("0.4.6", (3, 9, 1), ""),
        ("0.3.0", (3, 6, 1), ""),
    ],
)
def test_an_interpreter_too_old_is_refused_by_the_wheel_and_without_it(wheel, version, python, says):
    known = problems(floor.check_python, some_lock(version), version, interpreter(python), None)
    assert says in known
    assert bool(says) == bool(known)
    if version != "0.3.0":
        read = problems(floor.check_python, some_lock(version), version, interpreter(python), parse_wheel(wheel(version)))
        assert says in read
        assert bool(says) == bool(read)


def test_a_lock_of_another_python_is_refused():
    head = "# uv pip compile --python-version 3.12 --python-platform x86_64-manylinux_2_35 --generate-hashes -"
    lock = some_lock(head=head)
    assert "resolved for Python 3.12" in problems(floor.check_python, lock, "0.5.23", interpreter((3, 13, 0)), None)
    assert not problems(floor.check_python, lock, "0.5.23", interpreter((3, 12, 9)), None)
    assert "glibc 2.35" in problems(floor.check_platform, lock, "0.5.23", interpreter(libc="glibc 2.34"), wheels_known=True)
    assert "x86_64" in problems(floor.check_platform, lock, "0.5.23", interpreter(machine="aarch64"), wheels_known=True)


@pytest.mark.parametrize(
    ("libc", "says"), [("glibc 2.31", "glibc 2.34 is needed"), ("", "another C library"), ("glibc 2.34", "")]
)
def test_the_c_library_of_a_release_is_known_without_its_wheel(libc, says):
    found = problems(floor.check_platform, some_lock(), "0.5.23", interpreter(libc=libc), wheels_known=False)
    assert says in found
    assert bool(says) == bool(found)


def test_a_local_build_of_the_pinned_version_counts_as_it_does_for_pip(tmp_path):
    house = tmp_path / "house"
    make_wheel(house, "sglang", "0.5.23")
    make_wheel(house, "torch", "2.0+cpu")
    lock, floors = some_lock(more="torch==2.0 --hash=sha256:aa"), floor.Floors()
    chosen = floor.check_wheels(floors, lock, interpreter(), in_folder(house), house)
    assert sorted(wheel.version for wheel in chosen) == ["0.5.23", "2.0+cpu"]
    assert not floors.problems


def test_every_pin_is_looked_for_in_the_wheelhouse(tmp_path):
    house = tmp_path / "house"
    make_wheel(house, "sglang", "0.5.23", "cp312-cp312-manylinux_2_34_x86_64")
    make_wheel(house, "numpy", "2.0", "cp311-cp311-manylinux_2_34_x86_64")
    more = "numpy==2.0 --hash=sha256:aa\ntorch==2.0 --hash=sha256:aa\nav==1 ; platform_machine == 'aarch64' --hash=sha256:aa"
    lock, floors = some_lock(more=more), floor.Floors()
    chosen = floor.check_wheels(floors, lock, interpreter(), in_folder(house), house)
    said = " | ".join(why for why, dummy in floors.problems)
    assert [wheel.name for wheel in chosen] == ["sglang"]
    assert "no wheel of torch 2.0 in the wheelhouse" in said
    assert "numpy-2.0-cp311-cp311-manylinux_2_34_x86_64.whl: it is for cp311-cp311, the interpreter is Python 3.12" in said
    assert "av" not in said
    old = problems(floor.check_wheels, lock, interpreter(libc="glibc 2.31"), in_folder(house), house)
    assert "it needs glibc 2.34, the host has 2.31" in old


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"writable": False}, "cannot be written"),
        ({"read_only": True, "writable": False}, "mounted read-only"),
        ({"noexec": True}, "noexec"),
        ({"free_bytes": 9 * GIB}, "9216 MiB free, 10240 MiB are needed"),
        ({}, ""),
    ],
)
def test_the_target_must_take_it(tmp_path, place, says):
    values = {
        "path": tmp_path,
        "existing": tmp_path,
        "writable": True,
        "read_only": False,
        "noexec": False,
        "free_bytes": 11 * GIB,
    }
    found = problems(floor.check_place, Place(**{**values, **place}), 10 * GIB, "wheels")
    assert says in found
    assert bool(says) == bool(found)


def test_room_is_worked_out_of_the_wheels_estimated_or_told(wheel):
    lock = some_lock(more="torch==2.0 --hash=sha256:aa")
    own = parse_wheel(wheel("0.5.23"))
    unpacked, source = own.sizes()
    need, dummy = floor.needed_bytes(lock, [own], from_index=False, compiled=False, space_mib=0)
    compiled, dummy = floor.needed_bytes(lock, [own], from_index=False, compiled=True, space_mib=0)
    assert unpacked < need < unpacked * 1.5
    assert compiled > need + source
    assert floor.needed_bytes(lock, [], from_index=True, compiled=True, space_mib=0) == (
        24 * GIB,
        "an estimate; sglang_engine_space_mib replaces it",
    )
    assert floor.needed_bytes(some_lock(), [], from_index=True, compiled=True, space_mib=0)[0] == 2 * GIB
    assert floor.needed_bytes(lock, [own], from_index=False, compiled=True, space_mib=7)[0] == 7 * 1024**2


@pytest.mark.parametrize(
    ("more", "driver", "says", "notes"),
    [
        ("nvidia-cuda-runtime==13.0.96 --hash=sha256:aa", "570.86.15", "CUDA 13 needs 580", 0),
        ("nvidia-cuda-runtime==13.0.96 --hash=sha256:aa", "580.95.05", "", 0),
        ("nvidia-cuda-runtime-cu12==12.9 --hash=sha256:aa", "470.1", "CUDA 12 needs 525", 0),
        ("cuda-python==13.0.1 --hash=sha256:aa", "570.1", "CUDA 13 needs 580", 0),
        ("nvidia-cuda-runtime==13.0.96 --hash=sha256:aa", None, "", 1),
        ("", "470.1", "", 0),
    ],
)
def test_a_driver_too_old_is_refused_and_one_that_is_not_there_is_said(more, driver, says, notes):
    floors = floor.Floors()
    floor.check_driver(floors, some_lock(more=more), driver)
    found = " | ".join(why for why, dummy in floors.problems)
    assert says in found
    assert (bool(found), len(floors.notes)) == (bool(says), notes)


def test_the_driver_is_asked_of_the_kernel(tmp_path):
    assert driver_version(tmp_path) is None
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("580.95.05\n")
    assert driver_version(tmp_path) == "580.95.05"


def test_the_interpreter_of_this_machine_says_what_it_is():
    found = ask_interpreter(sys.executable)
    assert found.version == sys.version_info[:3]
    assert found.target.machine == os.uname().machine
    assert "No such file" in ask_interpreter("/nonexistent/python3")
    assert isinstance(ask_interpreter("/bin/true"), str)


def test_a_place_that_is_not_there_is_judged_by_what_will_hold_it(tmp_path):
    place = look_at(tmp_path / "a" / "b")
    assert (place.existing, place.writable, place.read_only) == (tmp_path, True, False)
    assert place.free_bytes > 0
    assert not look_at(tmp_path / "file").existing.is_file()


def test_one_refusal_names_everything_and_nothing_is_written(tmp_path):
    wheel = make_wheel(tmp_path / "house", metadata=["Requires-Python: >=3.99"])
    lock = lock_of(wheel, more="torch==2.0 --hash=sha256:aa\nnvidia-cuda-runtime==13.0 --hash=sha256:aa")
    plan = make_plan(wanted(tmp_path, lock, driver="570.1", space_mib=10**9))
    with pytest.raises(InferopsError) as refused:
        plan.refuse()
    text = str(refused.value)
    for part in (
        "4 things",
        ">=3.99 is needed",
        "no wheel of torch 2.0",
        "nvidia-cuda-runtime 13.0",
        "MiB are needed",
        "CUDA 13",
        "nothing was",
    ):
        assert part in text
    assert not (tmp_path / "engines").exists()


def test_another_kernel_build_than_the_release_asks_for_is_refused_unless_accepted(tmp_path):
    """R-kind: sgl-kernel of another build loads, and fails in a kernel."""
    wheel = make_wheel(
        tmp_path / "house",
        metadata=["Requires-Dist: torch==2.11.0", "Requires-Dist: sglang-kernel==0.4.10", "Requires-Dist: aiohttp"],
    )
    kernel = make_wheel(tmp_path / "house", "sglang_kernel", "0.4.9")
    torch = make_wheel(tmp_path / "house", "torch", "2.11.0+cu130")
    lock = lock_of(wheel, kernel, torch)
    plan = make_plan(wanted(tmp_path, lock))
    assert [why for why, dummy in plan.floors.problems] == [
        "sglang-kernel: ==0.4.10 asked by the release, 0.4.9 is there [Requires-Dist]"
    ]
    assert any("aiohttp" in note for note in plan.floors.notes)
    accepted = make_plan(wanted(tmp_path, lock, accepted_pins=["sglang-kernel"]))
    assert accepted.floors.problems == []
    assert any(note.startswith("accepted: sglang-kernel") for note in accepted.floors.notes)


@pytest.mark.parametrize("version", ["0.4.6", "0.5.5", "0.5.12", "0.5.23"])
def test_published_releases_are_started_by_their_module(wheel, version):
    """R54: a launch form that the installed release does not have."""
    assert launch_words(wheel(version), "/e")[0] == ["-m", "sglang.launch_server"]


def test_a_release_without_the_module_is_started_by_serve_and_one_without_both_is_refused(tmp_path):
    newer = make_wheel(tmp_path, files={"sglang/cli/main.py": "", "sglang/cli/serve.py": ""})
    assert launch_words(newer, "/e")[0] == ["/e/bin/sglang", "serve"]
    (tmp_path / "sglang" / "cli").mkdir(parents=True)
    with pytest.raises(InferopsError, match="cannot be started"):
        launch_words(tmp_path, "/e")
    for name in ("main.py", "serve.py"):
        (tmp_path / "sglang" / "cli" / name).touch()
    assert launch_words(tmp_path, "/e")[0] == ["/e/bin/sglang", "serve"]
