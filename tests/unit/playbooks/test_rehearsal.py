# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""check.yml rehearses an upgrade for a whole inventory of hosts that cannot be reached, in one report (R6)."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import playing
import pytest

pytestmark = [pytest.mark.wheel, playing.in_a_clone]
PROFILE = {"model": {"served_name": "m", "path": "/srv/m"}, "hardware": {"sm": 120, "gpu_count": 2, "gpu_memory_mib": 97887}}
HOSTS = {
    "breaks.invalid": {"sglang_service_argv": ["--tp-size", "2", "--cuda-graph-max-bs", "16"]},
    "fine.invalid": {"sglang_service_args": {"tp_size": 2}},
    "nowhere.invalid": {"sglang_service_args": {"tp_size": 2}, "sglang_engine_version": "0.4.2"},
}


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory, wheel):
    """Play once on three hosts nobody can reach; return what ansible-playbook did and the folder of the report."""
    folder = tmp_path_factory.mktemp("rehearsal")
    (folder / "wheels").mkdir()
    for version in ("0.5.12", "0.5.20"):
        (folder / "wheels" / wheel(version).name).symlink_to(wheel(version))
    common = {
        "sglang_service_profile": PROFILE,
        "sglang_engine_version": "0.5.12",
        "sglang_service_rehearse_search": [str(folder / "wheels")],
        "ansible_become": True,
    }
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"sglang": {"hosts": HOSTS, "vars": common}}))
    words = [
        "playbooks/check.yml",
        "-i",
        inventory,
        "-e",
        "sglang_service_rehearse_to=0.5.20",
        "-e",
        f"sglang_service_rehearse_dest={folder}/out",
    ]
    return playing.ansible_playbook(*words, timeout=500), folder / "out"


def test_no_host_is_asked_and_the_play_fails_where_one_breaks(rehearsed):
    done, folder = rehearsed
    assert done.returncode != 0, done.stdout
    assert "UNREACHABLE" not in done.stdout and "Gathering Facts" not in done.stdout
    assert "breaks.invalid (main): SGLang 0.5.12 -> 0.5.20: breaks" in done.stdout
    assert "write --cuda-graph-max-bs-decode 16" in done.stdout
    assert "nowhere.invalid (main): not rehearsed: no source of SGLang 0.4.2" in done.stdout
    assert {path.name for path in folder.iterdir()} == {"result.json", "junit.xml", "annotations.txt", "report.html"}


def test_r6_one_report_holds_every_host_with_its_rewritten_command_line(rehearsed):
    folder = rehearsed[1]
    result = json.loads((folder / "result.json").read_text())
    hosts = {host["host"]: host for host in result["hosts"]}
    assert {name: host["verdict"] for name, host in hosts.items()} == {
        "breaks.invalid": "breaks",
        "fine.invalid": hosts["fine.invalid"]["verdict"],
        "nowhere.invalid": "not rehearsed",
    }
    assert hosts["fine.invalid"]["verdict"] in ("fine", "unknown")
    assert "--cuda-graph-max-bs-decode 16" in " ".join(hosts["breaks.invalid"]["rewritten"]["argv"])
    suites = ET.parse(folder / "junit.xml").getroot()
    assert [int(suite.get("failures")) for suite in suites] == [1, 1, 0]
    page = (folder / "report.html").read_text()
    assert all(name in page for name in HOSTS)
    assert "--cuda-graph-max-bs-decode 16" in page


def test_without_the_variable_the_play_checks_hosts_as_before(tmp_path):
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"sglang": {"hosts": {"a.invalid": {}}, "vars": {"sglang_service_profile": PROFILE}}}))
    done = playing.ansible_playbook("playbooks/check.yml", "-i", inventory, "--list-hosts", timeout=60)
    rehearsal, check = done.stdout.split("play #")[1:]
    assert "hosts (0)" in rehearsal and "a.invalid" not in rehearsal
    assert "a.invalid" in check
