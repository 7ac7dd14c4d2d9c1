"""Style and types, by the tools that contributors run."""

from __future__ import annotations

import sys
from pathlib import Path

CORE = "plugins/module_utils/_core"


def test_ruff(run):
    run("ruff", "check", ".")


def test_yamllint(run):
    run("yamllint", "--strict", ".")


def test_every_file_has_its_licence(run):
    run("reuse", "lint", "--quiet")


def test_mypy_strict_on_the_core(run):
    run(sys.executable, "-m", "mypy", "--strict", "-p", "_core", cwd=Path(CORE).parent.resolve())


def test_ansible_lint_production(run):
    run("ansible-lint", "--offline", "--strict", "--profile", "production")


def test_every_unit_test_is_collected(run):
    """Two files of one name in folders that are no packages stop all of pytest; whoever ran only their own sees nothing of it."""
    run(sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/unit")
