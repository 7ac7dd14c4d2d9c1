"""The stories: molecule scenarios on hosts with systemd, each verified by its own testinfra tests."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# On SGLang itself: tests/checks/test_real_engine.py plays it.
REAL = {path.parent.name for path in (REPOSITORY / "molecule").glob("*/molecule.yml") if "real: true" in path.read_text()}
SCENARIOS = sorted({path.parent.name for path in (REPOSITORY / "molecule").glob("*/molecule.yml")} - REAL)
# Most of the others start from the host that this one deploys and keeps (molecule/shared/prepare.yml), so they wait for it.
FIRST = "deploy"
# What takes long and hangs on no ansible-core: one runs it.
ONCE = {name for name in SCENARIOS if "once: true" in (REPOSITORY / "molecule" / name / "molecule.yml").read_text()}
BARE = {name for name in SCENARIOS if "bare: true" in (REPOSITORY / "molecule" / name / "molecule.yml").read_text()}
# A story waits for its host most of the time, and the host for its story.
AT_ONCE = 2

Stories = dict[str, "Future[float]"]


@pytest.fixture(scope="module")
def stories(run, request) -> Iterator[Stories]:
    """Play what was chosen, two at a time; each name leads to how long it took, or to its failure."""
    chosen = [item.callspec.params["scenario"] for item in request.session.items if item.path == request.path]
    begun: Stories = {}

    def follow(scenario: str) -> float:
        if FIRST in begun and scenario not in BARE:
            wait([begun[FIRST]])
        return play(run, scenario)

    pool = ThreadPoolExecutor(AT_ONCE)
    for scenario in sorted(chosen, key=lambda name: (name != FIRST, name not in BARE)):
        begun[scenario] = pool.submit(follow, scenario)
    yield begun
    pool.shutdown(cancel_futures=True)


def play(run, scenario: str) -> float:
    """Run one scenario from an untouched machine to its removal; return the seconds it took."""
    env = {
        "MOLECULE_GLOB": "molecule/*/molecule.yml",
        "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".collections"),
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": "",
        "INFEROPS_REPORTS": "",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    since = time.monotonic()
    try:
        run("molecule", "test", "-s", scenario, env=env)
    except pytest.fail.Exception:
        verified = REPOSITORY / "out" / "molecule" / scenario / "verify.log"
        if verified.exists():
            pytest.fail(f"{verified}\n{verified.read_text()[-8000:]}", pytrace=False)
        raise
    return time.monotonic() - since


@pytest.mark.skipif(os.geteuid() != 0, reason="test hosts need root")
@pytest.mark.parametrize("scenario", sorted({*SCENARIOS} - ONCE))
def test_story(stories, scenario, record_property):
    record_property("seconds", stories[scenario].result())


@pytest.mark.skipif(os.geteuid() != 0, reason="test hosts need root")
@pytest.mark.parametrize("scenario", sorted(ONCE))
def test_long_story(stories, scenario, record_property):
    record_property("seconds", stories[scenario].result())
