# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""upgrade.yml over a fleet that is not there: the canary comes alone and its failure ends the play; too few are refused."""

from __future__ import annotations

import json
import re
import sys

import playing
import pytest

pytestmark = playing.in_a_clone


@pytest.fixture
def upgrade(tmp_path):
    """upgrade(**variables) → what the play said, its status. The hosts have no model, so the first that is tried fails."""
    hosts = {f"gpu{at}": {"ansible_connection": "local"} for at in (1, 2, 3)}
    (tmp_path / "hosts.json").write_text(json.dumps({"sglang": {"hosts": hosts}}))

    def play(**variables):
        told = {
            "ansible_python_interpreter": sys.executable,
            "ansible_become": False,
            "sglang_release_python": sys.executable,
            "sglang_service_profile": "tiny_cpu",
            "sglang_service_instance": "nobody",
            "sglang_service_model_path": str(tmp_path / "none"),
            "sglang_release_tools_root": str(tmp_path / "tools"),
            **variables,
        }
        words = ["playbooks/upgrade.yml", "-i", str(tmp_path / "hosts.json"), "-e", json.dumps(told)]
        done = playing.ansible_playbook(*words, INFEROPS_CACHE=str(tmp_path / "cache"))
        return done.returncode, done.stdout + done.stderr

    return play


def tried(said):
    """Return the hosts that the play for the release came to, in their order."""
    release = said.partition("PLAY [Deploy a gated SGLang server]")[2]
    return list(dict.fromkeys(re.findall(r"^(?:ok|changed|fatal|skipping|included).*?\[?(gpu\d)", release, re.MULTILINE)))


def test_a_canary_that_fails_is_the_only_host_that_is_tried(upgrade):
    status, said = upgrade(inferops_canary="gpu3", inferops_batch=2)
    assert "gpu3 first, then 2 by 2; 0 of 3 serve now, never fewer than 0" in said, said
    assert status != 0
    assert tried(said) == ["gpu3"], said


def test_a_plan_below_the_share_is_refused_before_the_first_host(upgrade):
    status, said = upgrade(inferops_min_serving_ratio=0.5)
    assert status != 0
    assert "0 of 3 servers would be left, 50% are to serve at any time" in said, said
    assert "0 serve now; gpu1, gpu2, gpu3 not" in said
    assert "PLAY [Deploy a gated SGLang server]" not in said
