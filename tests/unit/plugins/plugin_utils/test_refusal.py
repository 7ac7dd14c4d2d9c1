# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A refusal inside a template is told once: the playbook's own output is looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ EXPRESSION }}"
"""


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("lookup('inferops.sglang.profile', 'k2_6_pp9')", "why:   known are"),
        ("{'points': [{'concurrency': 1, 'min_foo': 3}]} | inferops.sglang.gate_plan", "why:   known: concurrency"),
    ],
)
def test_where_why_and_do_are_printed_once(tmp_path, expression, told):
    play = tmp_path / "play.yml"
    play.write_text(PLAY.replace("EXPRESSION", expression))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(play)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 2, output
    assert output.count(told) == 1, output
    assert output.count("do:    ") == 1, output
    assert "None/" not in output
