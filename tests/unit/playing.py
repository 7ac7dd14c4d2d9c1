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
# Given as an extra variable, it makes a folder the tools of gate_inventory.
TOOLS_MARK = ("__sglang_release_tools_hash", "a" * 12)
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


def gate_inventory(folder, hosts, loaders=None):
    """Return an inventory of hosts that are this machine, for gate.yml; their tools are the interpreter of the tests."""
    tools = folder / "tools" / TOOLS_MARK[1]
    (tools / "bin").mkdir(parents=True, exist_ok=True)
    (tools / ".inferops-complete").write_text("")
    (tools / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "bin" / "python").chmod(0o755)
    model = folder / "weights"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text('{"architectures": ["X"]}')
    common = {
        "ansible_connection": "local",
        # Whoever asks for root fails: a play that only looks runs as the login that it has.
        "ansible_become_exe": "/bin/false",
        "ansible_python_interpreter": sys.executable,
        "sglang_service_profile": {"model": {"served_name": "kimi", "path": str(model)}},
        "sglang_model_weights_required": False,
        "sglang_release_tools_root": str(folder / "tools"),
        "sglang_gate_out_root": str(folder / "gates" / "{{ inventory_hostname }}"),
        "sglang_gate_report_dest": str(folder / "out"),
        "sglang_gate_bandwidth_file": str(folder / "bandwidth.json"),
    }
    return {"all": {"vars": common, "children": {"sglang": {"hosts": hosts}, "elsewhere": {"hosts": loaders or {}}}}}
