# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rules on the host of Prometheus: held to promtool before they are written, the same again the second time."""

from __future__ import annotations

import json
import sys

import playing
import yaml

pytestmark = playing.in_a_clone

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: inferops.sglang.sglang_observability}
"""
FIGURES = {"points": [{"concurrency": 16, "output_tokens_per_s": 156.4}], "gate_t": 1.0, "power_w": 240.0, "eager_ratio": 0.0}


def play(folder, promtool, *words):
    (folder / "play.yml").write_text(PLAY)
    targets = [{"host": "gpu1", "instance": "kimi", "scrape": "gpu1:8000", "figures": FIGURES}]
    told = {
        "sglang_observability_targets": targets,
        "sglang_observability_rules_file": str(folder / "rules" / "inferops.yml"),
        "sglang_observability_promtool": promtool,
        "sglang_observability_reload_command": ["touch", str(folder / "reloaded")],
    }
    told["ansible_python_interpreter"] = sys.executable
    return playing.ansible_playbook("-i", "localhost,", "-c", "local", str(folder / "play.yml"), "-e", json.dumps(told), *words)


def test_the_rules_are_written_once_checked_and_read_again(tmp_path):
    done = play(tmp_path, "/usr/bin/promtool", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "rules").exists()
    done = play(tmp_path, "/usr/bin/promtool")
    assert done.returncode == 0, done.stdout + done.stderr
    groups = yaml.safe_load((tmp_path / "rules" / "inferops.yml").read_text())["groups"]
    assert [group["name"] for group in groups] == ["inferops-gpu1-kimi", "inferops"]
    assert "< 109.48 and" in json.dumps(groups)
    (tmp_path / "reloaded").unlink()
    done = play(tmp_path, "/usr/bin/promtool")
    assert "changed=0" in done.stdout
    assert not (tmp_path / "reloaded").exists()


def test_rules_that_promtool_refuses_are_not_written(tmp_path):
    done = play(tmp_path, "/bin/false")
    assert done.returncode != 0
    assert not (tmp_path / "rules" / "inferops.yml").exists()
