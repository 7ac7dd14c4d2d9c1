"""configure_awx.yml with the real modules of awx.awx, against an AWX that holds requests to the published fields."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
OBJECTS = REPOSITORY / "playbooks" / "vars" / "awx.yml"
sys.path[:0] = [str(REPOSITORY / part) for part in ("plugins/module_utils", "tests/fakes", "tests/lab", "tests/unit")]

import playing  # noqa: E402
from awx.server import Server  # noqa: E402
from inferops_lab.places import cache  # noqa: E402

# The community package carries the collection awx.awx 24.6.1.
PACKAGE = ("ansible", "12.3.0", "cd156f82fa87f7a899212b0efa9f7ca3a24d609212de9f78428a572eb01e5414")
TOKEN = "canary-of-an-awx-token"


@pytest.fixture(scope="session")
def awx_collection():
    """Return a path of collections with awx.awx alone, fetched once and pinned by its hash."""
    name, version, sha256 = PACKAGE
    place = cache(f"awx-{sha256[:12]}")
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            words = ["download", "--quiet", "--no-deps", "--dest", folder, f"{name}=={version}"]
            subprocess.run([sys.executable, "-m", "pip", *words], check=True)
            (wheel,) = Path(folder).glob("*.whl")
            assert hashlib.sha256(wheel.read_bytes()).hexdigest() == sha256
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder, [entry for entry in archive.namelist() if "ansible_collections/awx/" in entry])
            wheel.unlink()
            Path(folder).rename(place)
            Path(folder).mkdir()
    return place


@pytest.fixture
def configure(released, awx_collection, tmp_path):
    """Return the AWX and a function that plays configure_awx on it and returns ok and changed, or the output where it fails."""
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    with Server(TOKEN) as server:

        def play(*words, fails=False):
            env = playing.clean_environ(
                ANSIBLE_COLLECTIONS_PATH=f"{released.parents[2]}:{awx_collection}",
                ANSIBLE_PIPELINING="1",
                CONTROLLER_HOST=server.url,
                CONTROLLER_OAUTH_TOKEN=TOKEN,
            )
            address = "inferops_awx_scm_url=https://git.example.com/site.git"
            argv = [playing.PLAYBOOK, "inferops.sglang.configure_awx", "-e", address, *words]
            done = subprocess.run(argv, cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
            said = done.stdout + done.stderr
            assert TOKEN not in said
            assert (done.returncode != 0) == fails, said
            counts = re.search(r"ok=(\d+)\s+changed=(\d+)", said)
            return said if fails else (int(counts[2]), said)

        yield server.awx, play
        server.shutdown()


def names(awx):
    """Return kind and name of all that is there beside what AWX brings along."""
    return {(kind, entry["name"]) for kind, table in awx.tables.items() for entry in table.values() if "name" in entry} - {
        ("credential_types", name) for name in ("Machine", "Vault", "Source Control")
    }


def test_made_once_announced_before_and_removed_on_request(configure):
    awx, play = configure
    hook = {"name": "hook", "notification_type": "webhook", "notification_configuration": {"url": "https://chat.example.com/x"}}
    words = ["-e", json.dumps({"inferops_awx_notifications": [hook]})]

    announced, said = play("--check", *words)
    assert awx.writes == [] and announced > 0
    assert "template SGLang upgrade" in said and "workflow SGLang upgrade with approval" in said

    play(*words)
    made = names(awx)
    assert {
        ("job_templates", f"SGLang {name}") for name in ("check", "gate", "drift", "deploy", "upgrade", "rollback", "adopt")
    } <= made
    assert {("schedules", f"SGLang nightly {name}") for name in ("gate", "drift")} <= made
    upgrade = next(one for one in awx.tables["job_templates"].values() if one["name"] == "SGLang upgrade")
    assert upgrade["allow_simultaneous"] is False and upgrade["survey_enabled"] is True
    used = awx.links["job_templates", upgrade["id"], "credentials"]
    assert {awx.tables["credentials"][one]["name"] for one in used} == {"SGLang change", "SGLang secrets", "SGLang vault"}
    assert awx.links["job_templates", upgrade["id"], "notification_templates_error"] != []
    (kind,) = [one for one in awx.tables["credential_types"].values() if one["name"] == "SGLang secrets"]
    assert kind["injectors"]["extra_vars"]["sglang_service_api_key"] == "{{ api_key | default('') }}"

    assert links(awx) == {
        ("check", "success_nodes"): ["approve"],
        ("approve", "success_nodes"): ["upgrade"],
        ("upgrade", "success_nodes"): ["gate"],
        ("gate", "failure_nodes"): ["rollback"],
    }
    assert [one["name"] for one in awx.approvals.values()] == ["Approve the upgrade"]

    # A change by hand is predicted, then put right; of all the rest nothing is written again.
    upgrade["playbook"] = "other.yml"
    before = len(awx.writes)
    changed, said = play("--check", *words)
    assert changed == 1 and awx.writes[before:] == [], said
    changed, said = play(*words)
    assert changed == 1 and upgrade["playbook"] == "upgrade.yml", said
    assert awx.writes[before:] == [f"PATCH /api/v2/job_templates/{upgrade['id']}/"]

    play("-e", "inferops_awx_state=absent")
    assert names(awx) == {("organizations", "Inferops"), ("notification_templates", "hook")}


def links(awx):
    """Return which node leads to which, by their names."""
    nodes = awx.tables["workflow_job_template_nodes"]
    return {
        (nodes[number]["identifier"], link): [nodes[one]["identifier"] for one in linked]
        for (kind, number, link), linked in awx.links.items()
        if kind == "workflow_job_template_nodes" and linked
    }


def test_a_setting_that_awx_does_not_have_is_refused_by_the_server(configure, tmp_path):
    """The stand-in itself can fail: a wrong choice comes back as AWX's own refusal."""
    play = configure[1]
    text = OBJECTS.read_text().replace("source: scm", "source: scmm")
    (tmp_path / "awx.yml").write_text(text)
    assert "scmm" in play("-e", f"inferops_awx_file={tmp_path}/awx.yml", fails=True)


def test_without_the_address_of_the_project_nothing_is_asked(configure):
    awx, play = configure
    assert "AWX cannot be configured" in play("-e", "inferops_awx_state=gone", fails=True) and awx.writes == []


class _Loader(yaml.SafeLoader):
    """Reads !unsafe as text."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def test_surveys_offer_what_profiles_and_roles_know():
    objects = yaml.load(OBJECTS.read_text(), Loader=_Loader)
    profiles = sorted(path.stem for path in (REPOSITORY / "roles/sglang_service/files/profiles").glob("*.yml"))
    options = {}
    for path in (REPOSITORY / "roles").glob("*/meta/argument_specs.yml"):
        for point in yaml.safe_load(path.read_text())["argument_specs"].values():
            options |= point.get("options", {})
    asked = [one for template in objects["controller_templates"] for one in template.get("survey_spec", {}).get("spec", ())]
    assert asked
    for one in asked:
        assert one["variable"] in options
        if one["variable"] == "sglang_service_profile":
            assert sorted(one["choices"]) == profiles
        elif "choices" in options[one["variable"]]:
            assert one["choices"] == options[one["variable"]]["choices"]


def templates():
    return yaml.load(OBJECTS.read_text(), Loader=_Loader)["controller_templates"]


def test_every_job_has_its_playbook_in_the_site():
    for template in templates():
        assert (REPOSITORY / "examples/site" / template["playbook"]).exists()
    changing = {template["name"] for template in templates() if "changes hosts" in template["labels"]}
    assert changing == {f"SGLang {name}" for name in ("deploy", "upgrade", "rollback", "adopt")}


def test_jobs_that_look_have_neither_the_login_nor_the_secrets_of_those_that_change():
    for template in templates():
        looks = "looks only" in template["labels"]
        assert template["become_enabled"] is False and template["allow_simultaneous"] is False
        assert looks != ("changes hosts" in template["labels"])
        assert ("SGLang look" in template["credentials"]) == looks != ("SGLang change" in template["credentials"])
        assert not (looks and "SGLang secrets" in template["credentials"])
        play = (REPOSITORY / "playbooks" / template["playbook"]).read_text()
        assert ("become: true" in play) != looks
