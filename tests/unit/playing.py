# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""ansible-playbook of this environment on playbooks of the clone, without what the caller's environment tells Ansible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
in_a_clone = pytest.mark.skipif(
    not PLAYBOOK.exists() or not (ROOT / "deploy.yml").exists(), reason="runs in a clone with ansible-playbook"
)


def clean_environ(**more):
    """Return the caller's environment without what it tells Ansible, and with the programs of this ansible-core first."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "CONTROLLER_"))}
    return {**clean, "PATH": os.pathsep.join((str(PLAYBOOK.parent), os.environ["PATH"])), "ANSIBLE_NOCOLOR": "1", **more}


def ansible_playbook(*words, cwd=ROOT, timeout=300, **env):
    """Run it and return what it did, whatever its status."""
    return subprocess.run(
        [PLAYBOOK, *words],
        cwd=cwd,
        env=clean_environ(**env),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
