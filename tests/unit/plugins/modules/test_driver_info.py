# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module driver_info on this machine: documentation equals arguments, it answers whatever the machine is, it changes nothing."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.inferops.sglang.plugins.module_utils._core.driver.facts import Facts
from ansible_collections.inferops.sglang.plugins.modules import driver_info


def call(**args):
    """Run the module's main and return (failed, answer)."""
    out = io.StringIO()
    with patch_module_args(args), redirect_stdout(out), pytest.raises(SystemExit) as ended:
        driver_info.main()
    return ended.value.code != 0, json.loads(out.getvalue())


def test_documentation_and_arguments_are_the_same():
    documented, arguments = yaml.safe_load(driver_info.DOCUMENTATION)["options"], driver_info.argument_spec()
    assert documented.keys() == arguments.keys()
    for name, argument in arguments.items():
        for key in ("type", "choices", "default", "elements"):
            assert argument.get(key) == documented[name].get(key), (name, key)
        assert argument.get("required", False) == documented[name].get("required", False), name


def test_it_answers_on_this_machine_in_the_shape_that_is_documented():
    failed, answer = call(branch=580, package_output="E: Could not get lock /var/lib/dpkg/lock-frontend")
    assert not failed and not answer["changed"]
    assert {*yaml.safe_load(driver_info.RETURN)} == {key for key in answer if key not in {"changed", "invocation"}}
    assert {*answer["facts"]} == {*Facts.__dataclass_fields__}
    assert [finding["code"] for finding in answer["findings"]] == ["DRV-LOCKED"]
    documented = yaml.safe_load(driver_info.RETURN)["plan"]["description"]
    for key in answer["plan"]:
        assert f"C({key})" in " ".join(documented), key


def test_a_wish_that_means_nothing_is_a_message():
    failed, answer = call(branch=580, version="590.44.01")
    assert failed and "not of branch 580" in answer["msg"] and answer["do"]
