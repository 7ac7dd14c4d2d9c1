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
    run("molecule", "test", "-s", scenario, env={**env, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
