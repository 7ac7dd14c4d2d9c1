# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Python that is brought along: taken where the host's own will not do, proven, unpacked once, gone with its last use."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine import brought
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.bundle import seal
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.install import install
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.plan import make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.prune import absent
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import by_pip, lock_of, make_wheel, wanted

DOTTED = "{}.{}".format(*sys.version_info)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """This machine's Python as a folder that runs wherever it lies, packed as an "install only" archive is."""
    path = tmp_path_factory.mktemp("archive") / "cpython-install_only.tar.gz"
    subprocess.run([sys.executable, Path(__file__).with_name("pack_python.py"), path], check=True)
    return path


@pytest.fixture
def old(tmp_path):
    """What answers as CPython 3.10 does."""
    path = tmp_path / "python3.10"
    said = "sys.version_info = (3, 10, 12, 'final', 0); platform.python_version = lambda: '3.10.12'"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys, platform; {said}; exec(sys.argv[1])" "$3"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def wish(tmp_path, old, archive):
    lock = lock_of(make_wheel(tmp_path / "house", metadata=["Requires-Python: >=3.11"]))

    def make(**more):
        given = {"interpreter": str(archive), "interpreter_sha256": brought.sha256(archive)}
        return wanted(tmp_path, more.pop("lock", lock), **{"python": old, **given, **more})

    return make


def test_without_one_an_interpreter_too_old_is_refused_and_the_way_out_named(wish):
    plan = make_plan(wish(interpreter=""))
    ((why, do),) = plan.floors.problems
    assert "is Python 3.10.12, >=3.11 is needed [METADATA of sglang-9.9.9" in why
    assert "sglang_engine_interpreter_archive" in do


def test_it_makes_the_environment_where_the_hosts_own_is_too_old_and_goes_with_the_last_one(wish, tmp_path):
    plan = make_plan(wish())
    assert not plan.floors.problems and not (tmp_path / "engines").exists()
    assert any(f"Python {DOTTED}" in note and "3.10.12" in note for note in plan.floors.notes)
    plan, made, _dummy = install(wish(), by_pip(tmp_path))
    (home,) = (tmp_path / "engines" / ".python").iterdir()
    asked = [f"{plan.folder}/bin/python", "-c", "import sglang, sys; print(sys.base_prefix)"]
    assert made and subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == str(home)
    assert not install(wish(), by_pip(tmp_path))[1]
    other, *_dummy = install(wish(lock="# other\n" + wish().lock), by_pip(tmp_path))
    absent(plan.folder, tmp_path / "state", [], 0, dry=False)
    subprocess.run([f"{other.folder}/bin/python", "-c", "import sglang"], check=True)
    absent(other.folder, tmp_path / "state", [], 0, dry=False)
    assert [path.name for path in (tmp_path / "engines").iterdir()] == [".lock"]


def test_a_host_whose_own_will_do_never_looks_at_it(wish, tmp_path):
    plan = make_plan(wish(python=sys.executable, interpreter="/nonexistent"))
    assert plan.brought is None and not plan.floors.problems


def test_an_archive_that_is_not_the_one_that_is_meant_is_neither_unpacked_nor_run(wish, tmp_path, archive):
    for digest in ("0" * 64, ""):
        ((why, _do),) = [
            problem for problem in make_plan(wish(interpreter_sha256=digest)).floors.problems if "brought" in problem[0]
        ]
        assert f"{archive} is not the file that is meant" in why
    with pytest.raises(InferopsError, match="cannot be used"):
        install(wish(interpreter_sha256="0" * 64), by_pip(tmp_path))
    assert not (tmp_path / "engines" / ".python").exists()


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../out", tarfile.REGTYPE, ""),
        ("/out", tarfile.REGTYPE, ""),
        ("a/out", tarfile.SYMTYPE, "../../etc"),
        ("dev", tarfile.CHRTYPE, ""),
    ],
)
def test_an_archive_that_leads_out_of_itself_is_refused(tmp_path, name, kind, link):
    path = tmp_path / "odd.tar"
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    with tarfile.open(path, "w") as tar:
        tar.addfile(member, io.BytesIO())
    said = brought.look(path, brought.sha256(path), tmp_path / "engines")
    assert name in said and ("leads out" in said or "neither" in said)


def test_an_archive_cut_short_is_refused(tmp_path, archive):
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    assert "cannot be unpacked" in brought.look(cut, brought.sha256(cut), tmp_path / "engines")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".inferops-python")]


def installed_alone(asked, wheels):
    """Install in a network namespace of its own, where nobody can be asked anything; return the interfaces that were there."""
    names = "install import How, Sources, Wanted, install"
    code = f"import socket, sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n"
    code += f"from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.{names}\n"
    code += f"install({asked!r}, How(Sources({wheels!r}), 'pip', pip_python=sys.executable))\n"
    code += "print([name for number, name in socket.if_nameindex()])"
    cut = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return subprocess.run([*cut, sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_python_of_a_bundle_is_held_to_its_list_before_it_runs(wish, tmp_path, archive):
    bundle = tmp_path / "bundle"
    (bundle / "interpreter").mkdir(parents=True)
    wheel = make_wheel(bundle / "wheels", metadata=["Requires-Python: >=3.11"])
    (bundle / "engine.lock").write_text(lock_of(wheel) + "\n")
    packed = bundle / "interpreter" / archive.name
    shutil.copy(archive, packed)
    seal(bundle, "9.9.9")
    assert f"interpreter/{archive.name}" in (bundle / "sbom.cdx.json").read_text()
    asked = wish(lock=lock_of(wheel), bundle=str(bundle), interpreter="", interpreter_sha256="", wheelhouse="")
    plan = make_plan(asked)
    assert plan.brought and not plan.floors.problems
    with packed.open("ab") as file:
        file.write(b"more")
    assert any("is not the file that is meant" in why for why, dummy in make_plan(asked).floors.problems)
    shutil.copy(archive, packed)
    assert installed_alone(asked, f"{bundle}/wheels").strip() == "['lo']"
    assert make_plan(asked).complete


def test_what_was_unpacked_can_be_read_by_the_server_and_written_by_its_owner_alone(tmp_path):
    """Whatever the archive says of rights."""
    path, content = tmp_path / "odd.tar", b"#!/bin/sh\nexit 1\n"
    with tarfile.open(path, "w") as tar:
        for name, mode in (("bin/python3", 0o4777), ("lib/secret", 0o600)):
            member = tarfile.TarInfo(name)
            member.mode, member.size, member.uid = mode, len(content), 12345
            tar.addfile(member, io.BytesIO(content))
    (tmp_path / "tree").mkdir()
    tree = brought._unpack(path, tmp_path / "tree")
    assert [oct(os.lstat(tree / name).st_mode & 0o7777) for name in ("bin/python3", "lib/secret")] == ["0o755", "0o644"]
    assert os.lstat(tree / "lib/secret").st_uid == os.getuid()
