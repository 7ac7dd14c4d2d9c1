"""The stories: molecule scenarios on hosts with systemd, each verified by its own testinfra tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in (REPOSITORY / "molecule").glob("*/molecule.yml"))


@pytest.mark.skipif(os.geteuid() != 0, reason="test hosts need root")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_story(run, scenario):
    env = {
        "MOLECULE_GLOB": "molecule/*/molecule.yml",
        "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".collections"),
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": "",
        "INFEROPS_REPORTS": "",
    }
    try:
        run("molecule", "test", "-s", scenario, env={**env, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    except pytest.fail.Exception:
        verified = REPOSITORY / "out" / "molecule" / scenario / "verify.log"
        if verified.exists():
            pytest.fail(f"{verified}\n{verified.read_text()[-8000:]}", pytrace=False)
        raise
