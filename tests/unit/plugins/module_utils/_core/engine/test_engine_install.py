# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Environments made by the real pip: whole or not there, one run at a time, and no secret where others read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.hold import held
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.install import install, partial
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.installers import (
    Installer,
    Sources,
    choose,
    clean_environment,
    explain,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.plan import MARK, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import by_pip, interpreter, lock_of, make_wheel, wanted

CORE = Path(sys.modules[InferopsError.__module__].__file__).parents[1]


@pytest.fixture
def wish(tmp_path):
    return wanted(tmp_path, lock_of(make_wheel(tmp_path / "house")))


def left(tmp_path):
    """What lies in the folder of environments, the kernel lock's file left out."""
    return sorted(path.name for path in (tmp_path / "engines").iterdir() if path.name != ".lock")


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_environment_is_made_once_and_its_scripts_work_where_it_is(tmp_path, wish):
    plan, made, kind = install(wish, by_pip(tmp_path))
    assert (made, kind, plan.complete) == (True, "pip", True)
    assert left(tmp_path) == [plan.folder.name]
    program = plan.folder / "bin" / "sglang"
    assert program.read_text().startswith(f"#!{plan.folder}/bin/python")
    for path in plan.folder.rglob("*"):
        assert not path.is_file() or path.is_symlink() or b".partial" not in path.read_bytes(), path
    assert (
        subprocess.run([f"{plan.folder}/bin/python", "-m", "sglang.launch_server"], capture_output=True, check=True).stdout
        == b"launched\n"
    )
    record = json.loads((plan.folder / MARK).read_text())
    assert (record["version"], record["lock_sha256"]) == ("9.9.9", plan.lock.sha256)
    before = (plan.folder / MARK).stat().st_mtime_ns
    assert install(wish, by_pip(tmp_path))[1:] == (False, "")
    assert (plan.folder / MARK).stat().st_mtime_ns == before


def test_the_records_of_packages_still_hold_for_the_scripts(tmp_path, wish):
    plan, *_dummy = install(wish, by_pip(tmp_path))
    check = "import importlib.metadata as m, base64, hashlib\nfor f in m.distribution('sglang').files:\n"
    check += "    d = base64.urlsafe_b64encode(hashlib.sha256(f.locate().read_bytes()).digest()).rstrip(b'=').decode()\n"
    check += "    if f.hash and f.hash.value != d: print(f)"
    done = subprocess.run([f"{plan.folder}/bin/python", "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_two_runs_at_once_make_it_once(tmp_path, wish):
    results = []
    threads = [threading.Thread(target=lambda: results.append(install(wish, by_pip(tmp_path))[1])) for dummy in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, True]


def test_who_holds_it_is_named_and_an_installer_that_outlives_its_run_still_does(tmp_path, wish):
    """Killed in the middle: what is left is removed by the next run, and not while the orphan still writes."""
    slow = script(tmp_path / "slow", f"echo $$ > {tmp_path}/pid; sleep 60")
    how = f"How(Sources({wish.wheelhouse!r}), 'pip', pip_python={slow!r})"
    program = f"import sys; sys.path.insert(0, {str(CORE)!r})\nfrom _core.engine.install import *\n"
    program += (
        f"install(Wanted({wish.version!r}, {wish.lock!r}, {wish.root!r}, {wish.python!r}, wheelhouse={wish.wheelhouse!r}), {how})"
    )
    run = subprocess.Popen([sys.executable, "-c", program])
    while not (tmp_path / "pid").exists():
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    folder = make_plan(wish).folder
    assert partial(folder).exists()
    assert not folder.exists()
    with pytest.raises(InferopsError) as refused:
        install(wish, by_pip(tmp_path, wait_s=0.1))
    assert f"process {run.pid}" in str(refused.value)
    assert f"installs {folder.name}" in str(refused.value)
    subprocess.run(["pkill", "-P", (tmp_path / "pid").read_text().strip()], check=False)
    assert install(wish, by_pip(tmp_path))[1]
    assert left(tmp_path) == [folder.name]


def test_the_lock_ends_with_its_holder(tmp_path):
    with held(tmp_path, "first", 0), pytest.raises(InferopsError, match="another run"), held(tmp_path, "second", 0):
        pass
    with held(tmp_path, "third", 0):
        assert json.loads((tmp_path / ".lock").read_text())["what"] == "third"


def test_a_wheel_that_was_changed_is_refused_by_name_and_nothing_is_left(tmp_path, wish):
    make_wheel(tmp_path / "house", files={"sglang/launch_server.py": "print('not what was locked')"})
    with pytest.raises(InferopsError) as refused:
        install(wish, by_pip(tmp_path))
    assert f"sglang==9.9.9 from {wish.wheelhouse} is not the file that the lock names (hash mismatch)" in str(refused.value)
    assert left(tmp_path) == []


def test_what_is_installed_is_held_against_the_lock_and_the_release(tmp_path):
    """An installer that says yes and did something else."""
    wheel = make_wheel(tmp_path / "house", metadata=["Requires-Dist: triton==3.0"])
    wish = wanted(tmp_path, lock_of(wheel))
    liar = script(tmp_path / "liar", "exit 0")
    with pytest.raises(InferopsError) as refused:
        install(wish, by_pip(tmp_path, pip_python=liar))
    assert "sglang: ==9.9.9 asked by the lock, it is not there" in str(refused.value)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "blocks", "says"),
    [
        ("import gone_package", True, "ModuleNotFoundError"),
        ("raise ImportError('x.so: undefined symbol: _ZN3c10')", True, "undefined symbol"),
        ("raise RuntimeError('Found no NVIDIA driver on your system')", False, "no NVIDIA driver"),
        ("pass", False, "can be imported"),
    ],
)
def test_the_argument_module_is_imported_where_the_lock_has_torch(tmp_path, source, blocks, says):
    files = {
        "sglang/__init__.py": "",
        "sglang/launch_server.py": "",
        "sglang/srt/__init__.py": "",
        "sglang/srt/server_args.py": source,
    }
    torch = make_wheel(tmp_path / "house", "torch", "2.0", scripts=False)
    wish = wanted(tmp_path, lock_of(make_wheel(tmp_path / "house", files=files), torch))
    if blocks:
        with pytest.raises(InferopsError, match=says):
            install(wish, by_pip(tmp_path))
        assert left(tmp_path) == []
    else:
        plan, *_dummy = install(wish, by_pip(tmp_path))
        assert any(says in note for note in plan.floors.notes)


def test_a_password_is_in_no_argument_no_file_and_no_message(tmp_path, wish):
    secret = "p@ss word/1"
    spy = script(
        tmp_path / "spy",
        f'printf "%s\\n" "$0" "$@" > {tmp_path}/argv; env > {tmp_path}/env; echo "401 Error for $PIP_INDEX_URL" >&2; exit 1',
    )
    sources = Sources("", "https://index.example/simple", "me", secret)
    with pytest.raises(InferopsError) as refused:
        install(wanted(tmp_path, wish.lock, wheelhouse="", space_mib=1), by_pip(tmp_path, sources=sources, pip_python=spy))
    assert "PIP_INDEX_URL=https://me:p%40ss%20word%2F1@index.example/simple" in (tmp_path / "env").read_text()
    for text in ((tmp_path / "argv").read_text(), str(refused.value)):
        assert secret not in text
        assert "p%40ss" not in text
    assert "refuses the account" in str(refused.value)
    for path in (tmp_path / "engines").rglob("*"):
        assert not path.is_file() or b"p%40ss" not in path.read_bytes()


@pytest.mark.parametrize(
    ("output", "says", "do"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left", "make room"),
        ("error: failed to write: No space left on device (os error 28)", "no space left", "make room"),
        ("  × Failed to read\n  ╰─▶ Hash mismatch for `sglang==0.5.23`", "sglang==0.5.23 from /house", "who changed"),
        ("Failed to establish a new connection: [Errno -2] Name or service not known", "cannot be reached", "wheelhouse"),
        ("error: Failed to extract archive: sglang.whl", "from /house is damaged", "fetch that file again"),
        ("something else", "something else", "put that right"),
    ],
)
def test_a_failure_is_told_by_its_cause(tmp_path, output, says, do):
    why, what = explain("uv", output, tmp_path, Sources("/house"))
    assert says in why
    assert do in what


def test_uv_is_taken_where_it_is_and_both_are_asked_for_the_same(tmp_path):
    uv = script(tmp_path / "uv", "exit 0")
    assert choose("auto", uv, sys.executable, interpreter()) == Installer("uv", [uv])
    assert choose("pip", uv, sys.executable, interpreter()) == Installer("pip", [sys.executable, "-m", "pip"])
    assert choose("pip", uv, "", interpreter()) == Installer("pip", [])
    with pytest.raises(InferopsError, match="uv is asked for"):
        choose("uv", "/nonexistent/uv", sys.executable, interpreter())
    for installer in (Installer("uv", ["uv"]), Installer("pip", ["p", "-m", "pip"]), Installer("pip", [])):
        words = installer.install("/e/bin/python", "/e/lock", Sources("/house"), "/cache", compiled=True)
        assert {"--no-deps", "--require-hashes", "--no-index", "/house"} <= set(words)
        online = installer.install("/e/bin/python", "/e/lock", Sources(), "/cache", compiled=False)
        assert "--no-index" not in online
        assert "/cache" in online


def test_an_installer_hears_nothing_of_the_callers_python(tmp_path):
    env = clean_environment({"PYTHONPATH": "/x", "PIP_TARGET": "/y", "https_proxy": "http://p"}, Sources(), str(tmp_path))
    assert not {"PYTHONPATH", "PIP_TARGET"} & set(env)
    assert (env["https_proxy"], env["TMPDIR"]) == ("http://p", str(tmp_path))
    assert os.environ.get("PIP_NO_INPUT") is None
