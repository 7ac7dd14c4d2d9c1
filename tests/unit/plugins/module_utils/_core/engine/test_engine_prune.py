# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is pruned, and what never is: a running environment, one that a release or a unit names, the newest idle ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.plan import MARK
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.prune import absent, environments, prune, uses
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError


@pytest.fixture
def host(tmp_path):
    """Five environments, e the newest; the folders of records and units."""
    root = tmp_path / "engines"
    for age, letter in enumerate("abcde"):
        folder = root / f"0.5.2-{letter}"
        (folder / "bin").mkdir(parents=True)
        (folder / MARK).write_text("{}")
        os.utime(folder / MARK, (age, age))
    (root / "0.5.2-unmarked").mkdir()
    (tmp_path / "units").mkdir()
    return root, tmp_path / "state", [tmp_path / "units"]


def names(paths):
    return [path.name[-1] for path in paths]


def release(state: Path, engine: Path, file="argv.json"):
    folder = state / "kimi" / "releases" / f"r-{engine.name}"
    folder.mkdir(parents=True)
    (folder / file).write_text(f'["{engine}/bin/python", "-m", "sglang.launch_server"]')


def test_the_newest_are_first_and_half_an_environment_is_none(host):
    assert names(environments(host[0])) == list("edcba")


@pytest.mark.parametrize(("keep", "gone"), [(0, "dcba"), (2, "ba"), (4, ""), (9, ""), (-1, "")])
def test_the_newest_idle_ones_stay(host, keep, gone):
    root, state, units = host
    assert names(prune(root, root / "0.5.2-e", keep, state, units, 0, dry=True)) == list(gone)
    assert names(environments(root)) == list("edcba")
    prune(root, root / "0.5.2-e", keep, state, units, 0, dry=False)
    assert names(environments(root)) == [letter for letter in "edcba" if letter not in gone]


@pytest.mark.parametrize("file", ["release.json", "argv.json", "unit"])
def test_what_a_release_or_a_unit_names_stays(host, file):
    root, state, units = host
    release(state, root / "0.5.2-a", file)
    (units[0] / "old.service").write_text(f"ExecStart={root}/0.5.2-b/bin/python -m sglang.launch_server\n")
    prune(root, root / "0.5.2-e", 0, state, units, 0, dry=False)
    assert names(environments(root)) == list("eba")


def test_what_runs_stays_and_cannot_be_removed(host):
    root, state, units = host
    python = root / "0.5.2-a" / "bin" / "python"
    python.symlink_to(sys.executable)
    run = subprocess.Popen([python, "-c", "print('up', flush=True); import time; time.sleep(60)"], stdout=subprocess.PIPE)
    run.stdout.readline()
    try:
        prune(root, root / "0.5.2-e", 0, state, units, 0, dry=False)
        assert names(environments(root)) == list("ea")
        with pytest.raises(InferopsError, match=f"process {run.pid}"):
            absent(root / "0.5.2-a", state, units, 0, dry=False)
    finally:
        run.kill()
        run.wait()
        run.stdout.close()
    assert absent(root / "0.5.2-a", state, units, 0, dry=True)
    assert absent(root / "0.5.2-a", state, units, 0, dry=False)
    assert not absent(root / "0.5.2-a", state, units, 0, dry=False)
    assert names(environments(root)) == ["e"]


def test_a_name_that_begins_alike_is_another_environment(host):
    root, state, dummy = host
    release(state, root / "0.5.2-ab")
    assert uses(root / "0.5.2-a", state, []) == []
