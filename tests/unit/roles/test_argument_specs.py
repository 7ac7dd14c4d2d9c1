# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Argument specs, defaults, tasks and tables of variables say the same."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TABLES = ROOT / "tools" / "role_tables.py"
SPEC = importlib.util.spec_from_file_location("role_tables", TABLES)
tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tables)
ROLES = tables.roles()
TYPES = {"str": str, "path": str, "int": int, "float": (int, float), "bool": bool, "dict": dict, "list": list}


def specs(role):
    return yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]


def defaults(role):
    return yaml.safe_load((role / "defaults" / "main.yml").read_text())


def texts(role):
    return "\n".join(
        path.read_text() for folder in ("tasks", "vars", "templates", "defaults") for path in (role / folder).glob("*")
    )


@pytest.fixture(params=ROLES, ids=lambda role: role.name)
def role(request):
    return request.param


def test_a_default_is_said_once_and_the_same(role):
    options, values = tables.options(role), defaults(role)
    assert set(values) <= set(options)
    for name, option in options.items():
        if "default" in option:
            assert values[name] == option["default"], name
            assert isinstance(option["default"], TYPES[option["type"]]), name
        elif name in values:
            assert "{{" in str(values[name]), f"{name} has a fixed default that the spec does not tell"


def test_an_optional_variable_without_default_is_asked_for_by_its_absence_only(role):
    undefined = {
        name for name, option in tables.options(role).items() if not option.get("required") and name not in defaults(role)
    }
    for name in undefined:
        assert name in texts(role), f"{name} does nothing"


def test_every_public_variable_is_used_and_every_used_one_is_public(role):
    used = set(re.findall(rf"(?<![\w.]){role.name}_\w+", texts(role)))
    handed_over = set(
        re.findall(rf"^\s+({role.name}_\w+):", "".join(p.read_text() for p in (role / "tasks").glob("*.yml")), re.MULTILINE)
    )
    assert used - handed_over <= set(tables.options(role))
    assert set(tables.options(role)) <= used


def test_a_role_reads_no_variable_of_another(role):
    for other in ROLES:
        if other != role:
            assert not re.findall(
                rf"(?<![\w.]){other.name}_\w+", re.sub(r"fail_msg:.*|msg:.*|^\s+(?:where|why|do):.*", "", texts(role), flags=re.M)
            )


def test_every_entry_point_has_a_tasks_file_and_the_same_meaning(role):
    for entry, spec in specs(role).items():
        assert (role / "tasks" / f"{entry}.yml").is_file(), entry
        for name, option in spec["options"].items():
            assert option == tables.options(role)[name]


def test_secrets_are_kept_out_of_the_log():
    options = tables.options(ROOT / "roles" / "sglang_service")
    secrets = [name for name in options if name.endswith("_key")]
    assert secrets
    assert all(options[name]["no_log"] for name in secrets)


@pytest.mark.parametrize("path", tables.pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_tables_are_current(path):
    assert path.read_text() == tables.pages()[path], "run tools/role_tables.py"
