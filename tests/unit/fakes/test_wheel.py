"""The wheel: same tree, same bytes; and the hook takes over launches of the server and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from inferops_fake_engine.hook import launches_server

FAKES = Path(__file__).resolve().parents[2] / "fakes"


def build(folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, str(FAKES / "build"), "wheel", str(folder)], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


def test_two_builds_are_the_same_and_complete(tmp_path):
    first, second = build(tmp_path / "a"), build(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    assert {
        "inferops_fake_engine.pth",
        "inferops_fake_engine/recordings/0.5.23/flags.json",
        "inferops_fake_engine/launch/sglang/cli/main.py",
    } <= names


@pytest.mark.parametrize(
    ("words", "launches"),
    [
        (["/v/bin/python", "-m", "sglang.launch_server", "--pp-size", "8"], True),
        (["/v/bin/python", "-I", "-m", "sglang.launch_server"], True),
        (["/v/bin/python", "/v/bin/sglang", "serve", "--model-path", "m"], True),
        (["/v/bin/python", "-m", "sglang.bench_serving"], False),
        (["/v/bin/python", "-m", "pip", "install", "sglang"], False),
        (["/v/bin/python", "-c", "import sglang", "-m", "sglang.launch_server"], False),
        (["/v/bin/python", "tool.py", "sglang"], False),
        (["/v/bin/python"], False),
    ],
)
def test_what_counts_as_a_launch(words, launches):
    assert launches_server(words) is launches


def test_installed_beside_a_package_named_sglang_only_a_launch_is_taken_over(tmp_path):
    site = tmp_path / "site"
    (site / "sglang").mkdir(parents=True)
    (site / "sglang" / "__init__.py").write_text("REAL = True\n")
    (site / "sglang" / "launch_server.py").write_text("print('the real one')\n")
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        wheel.extractall(site)

    def python(*words: str) -> str:
        # An explicit addsitedir: the .pth file is honoured as in a real environment
        boot = f"import site, sys; sys.orig_argv = [sys.executable, *{list(words)!r}]; site.addsitedir({str(site)!r}); "
        run = "import runpy; sys.argv = ['x', '--model-path', 'm', '--no-such-flag']; "
        run += "runpy.run_module('sglang.launch_server', run_name='__main__')"
        env = {"INFEROPS_FAKE_VERSION": "0.5.23", "PATH": "/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-I", "-c", boot + run], env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "unrecognized arguments: --no-such-flag" in python("-m", "sglang.launch_server", "--no-such-flag")
    assert "the real one" in python("-m", "something.else")
