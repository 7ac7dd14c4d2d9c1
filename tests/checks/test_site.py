"""examples/site as people use it: copied out, with nothing but the released tarball installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
SITE = REPOSITORY / "examples" / "site"
CANARY = "canary-of-a-client-key"
sys.path.insert(0, str(REPOSITORY / "tests" / "unit"))

import playing  # noqa: E402
import wheels  # noqa: E402


@pytest.fixture
def site(run, released, tmp_path):
    """Return a copy with the collection, a vault and the wheels it asks for, as if they had been downloaded."""
    place = tmp_path / "site"
    shutil.copytree(SITE, place)
    (place / "collections" / "ansible_collections").symlink_to(released.parents[1])
    (place / "wheels").mkdir()
    for version in ("0.5.12", "0.5.23"):
        path = wheels.fetch(version)
        (place / "wheels" / path.name).symlink_to(path)
    secrets = place / "inventory/group_vars/sglang/vault.yml"
    secrets.write_text(f"vault_sglang_api_key: {CANARY}\n")
    (tmp_path / "password").write_text("of the vault\n")
    run("ansible-vault", "encrypt", "--vault-password-file", tmp_path / "password", secrets)
    main = place / "inventory/group_vars/sglang/main.yml"
    main.write_text(main.read_text().replace("# sglang_service_api_key", "sglang_service_api_key"))
    return place


def flags(site, *words, **env):
    """Run ci/flags in the copy; return status and output."""
    done = subprocess.run(
        ["ci/flags", *words],
        cwd=site,
        env=playing.clean_environ(ANSIBLE_VAULT_PASSWORD_FILE=str(site.parent / "password"), **env),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert CANARY not in done.stdout
    return done.returncode, done.stdout


def declare(site, **variables):
    main = site / "inventory/group_vars/sglang/main.yml"
    main.write_text(yaml.safe_dump({**yaml.safe_load(main.read_text()), **variables}))


def test_the_site_as_shipped_is_fine(site):
    status, said = flags(site)
    assert status == 0 and "gpu1 (kimi): SGLang 0.5.23" in said, said
    assert {path.name for path in (site / "out/rehearsal").iterdir()} == {
        "result.json",
        "junit.xml",
        "annotations.txt",
        "report.html",
    }


def test_a_leftover_switch_fails_the_pull_request_with_an_annotation(site):
    """R83, R85: the story's flag in the inventory is found before any host is asked."""
    declare(site, sglang_service_args={"disable_cuda_graph": True})
    status, said = flags(site, GITHUB_ACTIONS="true")
    assert status != 0
    errors = [line for line in said.splitlines() if line.startswith("::error ")]
    assert any("SGA301" in line and "--disable-cuda-graph" in line for line in errors), said


def test_the_rehearsal_names_what_the_next_release_renames(site):
    declare(site, sglang_engine_version="0.5.12", sglang_service_argv=["--pp-size", "8", "--cuda-graph-max-bs", "16"])
    status, said = flags(site, "0.5.23", GITHUB_ACTIONS="true")
    assert status != 0 and "--cuda-graph-max-bs-decode 16" in said, said


def test_the_hook_of_pre_commit_checks_the_project_it_is_started_in(site):
    (hook,) = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "script" and hook["pass_filenames"] is False
    assert re.search(hook["files"], "inventory/group_vars/sglang/main.yml") and not re.search(hook["files"], "README.md")
    declare(site, sglang_service_args={"disable_cuda_graph": True})
    # R85: collections in the wrong file are named.
    (site / "roles").mkdir()
    shutil.copy(site / "collections/requirements.yml", site / "roles/requirements.yml")
    env = playing.clean_environ(ANSIBLE_VAULT_PASSWORD_FILE=str(site.parent / "password"))
    done = subprocess.run([REPOSITORY / hook["entry"]], cwd=site, env=env, check=False, capture_output=True, text=True)
    assert done.returncode != 0 and "SGA301" in done.stdout, done.stdout + done.stderr
    assert "roles/requirements.yml lists collections" in done.stderr


def test_a_project_that_nobody_installs_collections_for_takes_those_of_the_image(released, tmp_path):
    """R86: as of AWX's type manual. Without them the message is Ansible's; the page of AWX has it, and what to do."""
    place = tmp_path / "project"
    shutil.copytree(SITE, place)

    def play():
        words = [playing.PLAYBOOK, "--syntax-check", "deploy.yml"]
        env = playing.clean_environ(HOME=str(tmp_path))
        return subprocess.run(words, cwd=place, env=env, check=False, capture_output=True, text=True)

    without = play()
    said = re.search(r"Could not find or access '\S+/(inferops\.sglang\.deploy)'", without.stderr)
    assert without.returncode != 0 and said, without.stdout + without.stderr
    assert f"Could not find or access '…/{said[1]}'" in (REPOSITORY / "docs/awx.md").read_text()
    # Where the image has them, or its user; the project's own ansible.cfg does not hide them.
    (tmp_path / ".ansible").mkdir(exist_ok=True)
    (tmp_path / ".ansible/collections").symlink_to(released.parents[2])
    assert play().returncode == 0
    image = yaml.safe_load((REPOSITORY / "examples/execution-environment/execution-environment.yml").read_text())
    assert image["dependencies"]["galaxy"]["collections"][0]["type"] == "file"


def test_an_ansible_core_that_is_too_old_is_refused_by_name(released, tmp_path):
    """R88: by the project's ansible.cfg; of itself Ansible warns and goes on to an error that leads elsewhere."""
    place = tmp_path / "project"
    shutil.copytree(SITE, place)
    copy = place / "collections/ansible_collections/inferops/sglang"
    shutil.copytree(released, copy, ignore=shutil.ignore_patterns("docs", "tests"))
    runtime = copy / "meta/runtime.yml"
    runtime.write_text(re.sub("requires_ansible: .*", 'requires_ansible: ">=99.1"', runtime.read_text()))
    words = [playing.PLAYBOOK, "--syntax-check", "deploy.yml"]
    env = playing.clean_environ(HOME=str(tmp_path))
    done = subprocess.run(words, cwd=place, env=env, check=False, capture_output=True, text=True)
    assert done.returncode != 0 and "Collection inferops.sglang does not support Ansible version" in done.stderr, done.stderr


def test_every_playbook_is_there_by_its_full_name(run, site):
    listed = re.findall(r"inferops\.sglang\.\w+", (site / "README.md").read_text())
    playbooks = sorted({name for name in listed if name != "inferops.sglang"} | {"inferops.sglang.deploy"})
    for name in playbooks:
        run("ansible-playbook", "--syntax-check", "--vault-password-file", site.parent / "password", name, cwd=site)


def test_the_workflow_runs_what_is_tested_here():
    workflow = yaml.safe_load((SITE / ".github/workflows/flags.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["flags"]["steps"] if "run" in step]
    assert commands[-1].startswith("ci/flags")
    assert len((SITE / "deploy.yml").read_text().splitlines()) == 3
