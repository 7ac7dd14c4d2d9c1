# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/gate.yml as it is, against fake engines: several hosts in one play, and a load that another host sends."""

from __future__ import annotations

import json

import playing

pytestmark = playing.in_a_clone
PLAN = {
    "input_tokens": 16,
    "output_tokens": 16,
    "min_seconds_per_point": 0.2,
    "max_seconds_per_point": 10,
    # Here the program is the archive that Ansible sends: load workers must start from it, too.
    "client_processes": 2,
    "correctness": {"multi_turn": False, "tool_calls": False},
}


def play(folder, hosts, *words, loaders=None):
    """Play on hosts of this machine; return what ansible-playbook did."""
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps(playing.gate_inventory(folder, hosts, loaders)))
    return playing.ansible_playbook("playbooks/gate.yml", "-i", inventory, "-e", "=".join(playing.TOOLS_MARK), *words)


def host(port, least):
    point = {"concurrency": 2, "min_output_tokens_per_s": least}
    return {"sglang_service_port": port, "sglang_gate_plan": {**PLAN, "points": [point]}}


def test_each_host_has_its_verdict_and_report_and_none_hides_another(start, tmp_path):
    ports = [start("--served-model-name", "kimi", timescale=50).port for dummy in range(2)]
    early = {**host(ports[1], 1), "sglang_model_path": "", "sglang_service_model_path": str(tmp_path / "nothing")}
    hosts = {"slow": host(ports[0], 1e7), "fine": host(ports[1], 1), "gone": host(9, 1), "early": early}
    done = play(tmp_path, hosts)
    assert done.returncode == 2, done.stdout + done.stderr
    verdicts = {}
    for name, verdict in (("slow", "fail"), ("fine", "pass")):
        report = tmp_path / "out" / name / "main"
        verdicts[name] = json.loads((report / "result.json").read_text())["verdict"]
        assert verdicts[name] in (verdict, "inconclusive")
        assert (report / "report.html").exists()
    told = done.stdout[done.stdout.index("Compare the hosts") : done.stdout.index("PLAY RECAP")]
    lines = [line.strip() for line in told.splitlines()]
    assert [line.split()[0] for line in lines if line.startswith(tuple(hosts)) and ":" not in line] == list(hosts)
    assert any(line.startswith("gone: the server cannot be reached") for line in lines)
    assert any(line.startswith("early: an earlier task failed") for line in lines)
    assert any(line.startswith("slow: ") and "min_output_tokens_per_s" in line for line in lines)
    assert all(line.split()[1:3] == ["not", "judged"] for line in lines if line.startswith(("gone ", "early ")))
    assert "fatal: [slow]" in told and "fatal: [gone]" in told
    assert ("fatal: [fine]" in done.stdout) == (verdicts["fine"] == "inconclusive")


def test_another_host_sends_the_load_to_the_front_of_each_server(start, tmp_path):
    """The servers are two addresses of this machine; only what the play says makes them other machines."""
    key = "sk-of-the-front"
    ports = [start("--served-model-name", "kimi", "--api-key", key, timescale=50).port for dummy in range(2)]
    fronts = {
        name: {
            **host(9, 1),
            "ansible_host": "127.0.0.1",
            "sglang_release_front_listen": f"0.0.0.0:{port}",
            "sglang_service_api_key": key,
        }
        for name, port in zip(("one", "two"), ports, strict=True)
    }
    done = play(tmp_path, fronts, "-e", "inferops_load_host=loader", "-vvv", loaders={"loader": {}})
    assert done.returncode in (0, 2), done.stdout + done.stderr
    for name, port in zip(fronts, ports, strict=True):
        result = json.loads((tmp_path / "out" / name / "main" / "result.json").read_text())
        assert result["base_url"] == f"http://127.0.0.1:{port}" and result["points"][0]["requests"]["ok"] > 0, done.stdout
        assert result["points"][0]["client"]["processes"] == 2
        assert any("cards were not observed" in note and "another machine" in note for note in result["notes"])
        assert result["started_at"] <= result["ended_at"]
        assert (tmp_path / "gates" / name / f"by-hand-{name}" / "samples.jsonl").exists()
    spans = sorted(
        (result["started_at"], result["ended_at"])
        for result in (json.loads((tmp_path / "out" / name / "main" / "result.json").read_text()) for name in fronts)
    )
    assert spans[0][1] <= spans[1][0], "one load host, one load at a time"
    assert "one -> loader" in done.stdout and key not in done.stdout
    assert not list(tmp_path.rglob("api-key"))
