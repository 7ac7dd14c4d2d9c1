"""The collection as released: sanity on the installed tarball, syntax of every playbook, documentation of everything."""

from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize("kind", ["module", "lookup", "filter", "role"])
def test_documentation_renders(run, released, kind):
    """Every plugin and role of the released collection is listed and renders."""
    where = {"ANSIBLE_COLLECTIONS_PATH": str(released.parents[2])}
    listed = json.loads(run("ansible-doc", "-t", kind, "--list", "--json", "inferops.sglang", env=where))
    folders = {"module": "plugins/modules", "lookup": "plugins/lookup", "filter": "plugins/filter", "role": "roles"}
    assert listed, f"ansible-doc lists nothing below {folders[kind]}"
    for name in listed:
        assert name in run("ansible-doc", "-t", kind, name, env=where)
