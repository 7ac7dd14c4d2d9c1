# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One play uses one program: a clone that is updated in the middle of a play does not change the tools under its feet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: inferops.sglang.sglang_release, tasks_from: tools_plan}
    - ansible.builtin.set_fact: {first: "{{ sglang_release_tools }}"}
    - ansible.builtin.shell: echo '# newer' >> plugins/module_utils/_core/errors.py
      args: {chdir: "{{ playbook_dir }}"}
    - ansible.builtin.include_role: {name: inferops.sglang.sglang_release, tasks_from: tools_plan}
    - ansible.builtin.assert: {that: sglang_release_tools == first}
"""


@pytest.mark.skipif(not PLAYBOOK.exists() or not (ROOT / "ansible.cfg").exists(), reason="runs in a clone with ansible-playbook")
def test_a_clone_updated_in_the_middle_of_a_play_keeps_its_tools(tmp_path):
    for name in ("plugins", "roles/sglang_release", "meta"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", tmp_path / "galaxy.yml")
    link = tmp_path / ".collections" / "ansible_collections" / "inferops" / "sglang"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../")
    (tmp_path / "play.yml").write_text(PLAY)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            PLAYBOOK,
            "-i",
            "localhost,",
            "-c",
            "local",
            "play.yml",
            "-e",
            f"sglang_release_python={sys.executable} ansible_python_interpreter={sys.executable}",
        ],
        cwd=tmp_path,
        env={**clean, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / ".collections"), "INFEROPS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
