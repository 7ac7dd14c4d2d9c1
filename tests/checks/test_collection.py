"""The collection as released: sanity on the installed tarball, syntax of every playbook, documentation of everything."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / part) for part in ("plugins/module_utils", "tests/lab")]

from inferops_lab import environment  # noqa: E402

PLAYBOOKS = sorted(path.name for path in (REPOSITORY / "playbooks").glob("*.yml"))


def test_sanity(run, released, sanity_home):
    # Other Pythons of the machine may be shims that do not start; modules need 3.11 anyway (tests/config.yml).
    version = "{}.{}".format(*sys.version_info)
    run("ansible-test", "sanity", "--local", "--python", version, "--color", "no", cwd=released, env={"HOME": str(sanity_home)})


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_syntax_of_playbook(run, playbook):
    run("ansible-playbook", "--syntax-check", f"playbooks/{playbook}")


def test_a_clone_needs_nothing_installed(run):
    """R89, R83: names with namespace resolve from the clone by its own ansible.cfg."""
    run("ansible-playbook", "--syntax-check", "deploy.yml")


def test_documentation_keeps_the_rules_of_ansible(run, released):
    """Schema and markup of every plugin and role, and that what they refer to exists."""
    programs = environment.programs("docs")
    where = {"ANSIBLE_COLLECTIONS_PATH": str(released.parents[2]), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    run(programs / "antsibull-docs", "lint-collection-docs", "--plugin-docs", ".", cwd=released, env=where)


def test_the_demo_needs_nothing_but_the_released_files(run, released, tmp_path):
    """Its files are there, its ansible.cfg finds the collection around it, and the stand-ins built there are the clone's."""
    assert "--engine" in run(released / "tools/demo", "--help", cwd=tmp_path)
    code = "".join(path.read_text() for path in (released / "tests/lab").rglob("*.py"))
    named = {"/".join(re.findall('"(.+?)"', words)) for words in re.findall(r'REPOSITORY((?: / "[^"]+")+)', code)}
    missing = {name for name in named if not (released / name).exists()}
    assert len(named) > 15 and missing == {".venv", "out/demo", "out/molecule"}  # which it makes
    assert "topology" in run("ansible-doc", "-t", "lookup", "inferops.sglang.profile", cwd=released, env={"HOME": str(tmp_path)})
    built = []
    for place, root in ((tmp_path / "released", released), (tmp_path / "clone", REPOSITORY)):
        for kind in ("wheel", "cpu-wheel", "nvml", "cuda"):
            run(sys.executable, root / "tests/fakes/build", kind, place, cwd=tmp_path)
        built.append({path.name: path.read_bytes() for path in place.iterdir()})
    assert len(built[0]) == 4 and built[0] == built[1]


@pytest.mark.parametrize("kind", ["module", "lookup", "filter", "role"])
def test_documentation_renders(run, released, kind):
    """Every plugin and role of the released collection is listed and renders."""
    where = {"ANSIBLE_COLLECTIONS_PATH": str(released.parents[2])}
    listed = json.loads(run("ansible-doc", "-t", kind, "--list", "--json", "inferops.sglang", env=where))
    folders = {"module": "plugins/modules", "lookup": "plugins/lookup", "filter": "plugins/filter", "role": "roles"}
    assert listed, f"ansible-doc lists nothing below {folders[kind]}"
    said = run("ansible-doc", "-t", kind, *listed, env=where)
    assert [name for name in listed if name not in said] == []
