"""Jobs as AWX runs them, by ansible-runner, and the image they run in, by ansible-builder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / part) for part in ("plugins/module_utils", "tests/lab", "tests/unit")]

import playing  # noqa: E402
import wheels  # noqa: E402
from inferops_lab import environment, scenes  # noqa: E402

CANARY = "canary-of-an-injected-key"


@pytest.fixture(scope="session")
def programs():
    """Return the folder with ansible-runner and ansible-builder, from an environment of their own."""
    return environment.programs("awx")


@pytest.fixture
def job(programs, released, tmp_path):
    """Return a function that runs one playbook of the site in a private data directory, and its status, artifacts and events."""
    private = tmp_path / "private"
    shutil.copytree(REPOSITORY / "examples" / "site", private / "project")
    wheel = wheels.fetch("0.5.23")
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / wheel.name).symlink_to(wheel)
    shutil.copytree(private / "project" / "inventory", private / "inventory")
    (private / "env").mkdir()

    def run(playbook, **variables):
        injected = {"sglang_service_api_key": CANARY, "sglang_service_rehearse_search": [str(tmp_path / "wheels")]}
        (private / "env" / "extravars").write_text(json.dumps({**injected, **variables}))
        environ = playing.clean_environ(ANSIBLE_COLLECTIONS_PATH=str(released.parents[2]))
        words = [programs / "ansible-runner", "run", private, "-p", playbook, "--ident", "job"]
        done = subprocess.run(words, env=environ, cwd=tmp_path, check=False, capture_output=True, text=True)
        kept = private / "artifacts" / "job"
        events = [json.loads(path.read_text()) for path in sorted(kept.glob("job_events/*.json"))]
        return done, kept, events

    return run


def artifacts(events):
    """Return what AWX keeps of a job: the statistics of the run in its last event."""
    (last,) = [event for event in events if event["event"] == "playbook_on_stats"]
    return last["event_data"].get("artifact_data", {})


def test_a_check_leaves_its_verdict_as_an_artifact_and_no_secret(job):
    done, kept, events = job("check.yml", sglang_service_rehearse_to="0.5.23", sglang_service_args={"disable_cuda_graph": True})
    assert (kept / "status").read_text() == "failed", done.stdout
    assert artifacts(events)["inferops_rehearsal"] == "breaks"
    assert "SGA301" in json.dumps(events) or "disable-cuda-graph" in json.dumps(events)
    for path in kept.rglob("*"):
        assert not path.is_file() or CANARY not in path.read_text(), path
    assert CANARY not in done.stdout + done.stderr


def test_output_is_lines_without_control_characters(job):
    done, kept, events = job("check.yml", sglang_service_rehearse_to="0.5.23")
    assert (kept / "status").read_text() == "successful", done.stdout
    plain = "".join(event["stdout"] for event in events)
    for sequence in ("\x1b[0;3", "\x1b[1;3", "\x1b[0m"):  # colours, which AWX shows as such
        plain = plain.replace(sequence, "")
    assert "\r" not in plain.replace("\r\n", "\n") and "\x1b[A" not in plain and "\x08" not in plain


@pytest.fixture
def engine(tmp_path):
    """Start the fake engine and return its port."""
    arguments = ["--served-model-name", "kimi", "--api-key", CANARY]
    (tmp_path / "engine").mkdir()
    with scenes.server(arguments, {"start_seconds": 0.1}, tmp_path / "engine", {"INFEROPS_FAKE_TIMESCALE": "50"}) as url:
        yield url.rpartition(":")[2]


def test_a_gate_hands_on_verdict_and_figures_and_never_becomes_root(job, engine, tmp_path):
    """The play of a job that only looks, with the key that AWX injects; asking for root would fail (playing.gate_inventory)."""
    plan = {
        "input_tokens": 16,
        "output_tokens": 16,
        "min_seconds_per_point": 0.2,
        "max_seconds_per_point": 5,
        "points": [{"concurrency": 2, "min_output_tokens_per_s": 1e7}],
        "correctness": {"multi_turn": False, "tool_calls": False},
    }
    front = {"ansible_host": "127.0.0.1", "sglang_release_front_listen": f"0.0.0.0:{engine}", "sglang_gate_plan": plan}
    hosts = playing.gate_inventory(tmp_path, {"gpu1": front}, {"loader": {}})
    (tmp_path / "private/inventory/hosts.yml").write_text(json.dumps(hosts))
    shutil.rmtree(tmp_path / "private/inventory/group_vars")
    done, kept, events = job("gate.yml", inferops_load_host="loader", **dict([playing.TOOLS_MARK]))
    assert (kept / "status").read_text() == "failed", done.stdout
    handed = artifacts(events)["inferops_results"]["gpu1/main"]
    assert handed["verdict"] in ("fail", "inconclusive") and handed["points"][0]["output_tokens_per_s"] > 0, done.stdout
    assert any("min_output_tokens_per_s" in reason for reason in handed["reasons"])
    assert (tmp_path / "out/gpu1/main/report.html").exists()
    for path in kept.rglob("*"):
        assert not path.is_file() or CANARY not in path.read_text(), path


def test_the_build_context_of_the_image_holds_the_collection(run, programs, tmp_path):
    place = tmp_path / "ee"
    shutil.copytree(REPOSITORY / "examples" / "execution-environment", place)
    run("ansible-galaxy", "collection", "build", "--output-path", place, cwd=REPOSITORY)
    run(programs / "ansible-builder", "create", "-v", "3", cwd=place)
    context = place / "context"
    (tarball,) = (context / "_build").glob("inferops-sglang-*.tar.gz")
    needed = yaml.safe_load((context / "_build" / "requirements.yml").read_text())
    assert needed["collections"] == [{"name": tarball.name, "type": "file"}]
    # Where there is Docker and no podman, ansible-builder gives it Docker's name.
    (recipe_path,) = context.glob("*file")
    recipe = recipe_path.read_text()
    assert recipe.index("COPY _build/inferops-sglang") < recipe.index("ansible-galaxy collection install")


def test_the_collection_needs_no_python_of_its_own_where_ansible_runs(run, programs, released):
    said = run(programs / "ansible-builder", "introspect", released.parents[2])
    found = yaml.safe_load(said[said.index("---") :] if "---" in said else said)
    assert not found.get("python"), said
    assert any(line.startswith("openssh-client ") for line in found["system"]), said
