# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One play uses one program: a clone that is updated in the middle of a play does not change the tools under its feet."""

from __future__ import annotations

import shutil
import sys

import playing

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


@playing.in_a_clone
def test_a_clone_updated_in_the_middle_of_a_play_keeps_its_tools(tmp_path):
    for name in ("plugins", "roles/sglang_release", "meta"):
        shutil.copytree(playing.ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(playing.ROOT / "galaxy.yml", tmp_path / "galaxy.yml")
    link = tmp_path / ".collections" / "ansible_collections" / "inferops" / "sglang"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../")
    (tmp_path / "play.yml").write_text(PLAY)
    done = playing.ansible_playbook(
        *("-i", "localhost,", "-c", "local", "play.yml"),
        *("-e", f"sglang_release_python={sys.executable} ansible_python_interpreter={sys.executable}"),
        cwd=tmp_path,
        timeout=120,
        ANSIBLE_COLLECTIONS_PATH=str(tmp_path / ".collections"),
        INFEROPS_CACHE=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
