# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Role sglang_model brings weights to a fleet: one host fetches, the others take it from there, one without space is named."""

from __future__ import annotations

import json
import re
import sys

import playing
import pytest

pytestmark = playing.in_a_clone
SECRET = "canary0123456789"
PLAY = [{"hosts": "all", "gather_facts": False, "roles": ["inferops.sglang.sglang_model"]}]


def make_model(folder):
    """One small shard, its config and its index."""
    folder.mkdir()
    tensor = {"model.layers.0.w": {"dtype": "U8", "shape": [1000], "data_offsets": [0, 1000]}}
    header = json.dumps(tensor).encode()
    (folder / "model-1-of-1.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(1000))
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1}')
    index = {"weight_map": dict.fromkeys(tensor, "model-1-of-1.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.fixture
def play(tmp_path):
    """Return a function that plays the role on hosts of this machine, each with a folder of its own."""
    make_model(tmp_path / "published")
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "sglang_model_python": sys.executable,
        "sglang_model_name": "tiny",
        "sglang_model_revision": "r1",
        "sglang_model_reserve_mib": 1,
        "sglang_model_root": f"{tmp_path}/{{{{ inventory_hostname }}}}",
        "sglang_model_source": {"kind": "rsync", "from": f"{tmp_path}/published"},
    }

    def run(hosts, *words, **changed):
        (tmp_path / "play.json").write_text(json.dumps(PLAY))
        (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": {**common, **changed}}}))
        return playing.ansible_playbook(tmp_path / "play.json", "-i", tmp_path / "hosts.json", "-f", "4", *words)

    return run


def recap(done):
    return {
        host: (int(changed), int(failed))
        for host, changed, failed in re.findall(r"(\S+) +: ok=.*changed=(\d+).*failed=(\d+)", done.stdout)
    }


def test_one_of_eight_hosts_has_no_space_and_seven_finish_with_one_download(play, tmp_path):
    """The host without space is the first, which would have fetched for all."""
    hosts = {f"h{number}": {} for number in range(1, 9)}
    hosts["h1"] = {"sglang_model_reserve_mib": 1e12}
    done = play(hosts, sglang_model_peer=f"{tmp_path}/{{{{ ansible_play_hosts[0] }}}}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert recap(done) == {"h1": (0, 1), **{f"h{number}": (1, 0) for number in range(2, 9)}}
    assert "there is no space for tiny r1" in done.stdout and not (tmp_path / "h1").exists()
    assert len(re.findall(rf"fetched .* from rsync {tmp_path}/published", done.stdout)) == 1
    assert len(re.findall(rf"fetched .* from rsync {tmp_path}/h2/tiny/r1", done.stdout)) == 6
    assert all((tmp_path / f"h{number}" / "tiny" / "r1" / "config.json").exists() for number in range(2, 9))


def test_told_then_done_then_nothing(play, tmp_path):
    told = play({"h1": {}}, "--check")
    assert recap(told) == {"h1": (1, 0)} and not (tmp_path / "h1").exists(), told.stdout
    assert recap(play({"h1": {}})) == {"h1": (1, 0)}
    again = play({"h1": {}})
    assert recap(again) == {"h1": (0, 0)} and "nothing to do" in again.stdout


def test_a_playbook_that_changes_nothing_refuses_a_host_without_weights(play, tmp_path):
    done = play({"h1": {}}, sglang_model_fetch_allowed=False)
    assert "the weights are not on this host yet" in done.stdout and not (tmp_path / "h1").exists()


def test_a_secret_is_not_printed_however_much_is_said(play, tmp_path):
    done = play({"h1": {}}, "-vvv", sglang_model_token=SECRET, sglang_model_environment={"RSYNC_PASSWORD": SECRET})
    assert recap(done) == {"h1": (1, 0)}, done.stdout
    assert SECRET not in done.stdout + done.stderr
    kept = [path for path in (tmp_path / "h1").rglob("*") if path.is_file()]
    assert kept and not any(SECRET.encode() in path.read_bytes() for path in kept)


def test_how_far_the_fetch_is_stands_in_the_output_as_it_goes(play, tmp_path):
    jobs = tmp_path / "jobs"
    done = play({"h1": {}, "h2": {}}, ansible_async_dir=str(jobs))
    assert recap(done) == {"h1": (1, 0), "h2": (1, 0)}, done.stdout
    for host in ("h1", "h2"):
        assert re.findall(rf"^  {host}: \d\d:\d\d:\d\d (.*)$", done.stdout, re.M) == [
            f"fetch 0.0 GiB from rsync {tmp_path}/published, 0.0 GiB are there",
            "whole",
        ]
    assert jobs.is_dir() and not list(jobs.iterdir())
    again = play({"h1": {}, "h2": {}}, ansible_async_dir=str(jobs))
    assert not re.findall(r"^  h1: \d\d:", again.stdout, re.M), "what an earlier run wrote is not told again"
