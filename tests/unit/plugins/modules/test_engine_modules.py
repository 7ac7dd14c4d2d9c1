# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules engine, engine_image and engine_info: documentation equals arguments, check mode predicts, refusals are messages."""

from __future__ import annotations

import importlib
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.module_input import shared_spec
from ansible_collections.inferops.sglang.plugins.modules import engine, engine_image, engine_info

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "module_utils" / "_core" / "engine"))
from engines import lock_of, make_wheel

FRAGMENTS = "ansible_collections.inferops.sglang.plugins.doc_fragments"


def call(module, **args):
    """Run a module's main and return (failed, answer)."""
    out = io.StringIO()
    with patch_module_args(args), redirect_stdout(out), pytest.raises(SystemExit) as ended:
        module.main()
    return ended.value.code != 0, json.loads(out.getvalue())


@pytest.fixture
def asked(tmp_path):
    wheel = make_wheel(tmp_path / "house")
    return {
        "version": "9.9.9",
        "lock": lock_of(wheel),
        "root": str(tmp_path / "engines"),
        "python": sys.executable,
        "wheelhouse": str(tmp_path / "house"),
        "compile": False,
    }


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (engine, engine.argument_spec()),
        (engine_image, engine_image.argument_spec()),
        (engine_info, {**shared_spec(), "required": {"type": "bool", "default": True}}),
    ],
    ids=["engine", "engine_image", "engine_info"],
)
def test_documentation_and_arguments_are_the_same(module, arguments):
    own = yaml.safe_load(module.DOCUMENTATION)
    documented = dict(own["options"])
    for name in own["extends_documentation_fragment"]:
        fragment = importlib.import_module(f"{FRAGMENTS}.{name.rpartition('.')[2]}")
        documented |= yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"]
    assert documented.keys() == arguments.keys()
    for name, argument in arguments.items():
        for key in ("type", "choices", "default", "elements"):
            assert argument.get(key) == documented[name].get(key), (name, key)
        assert argument.get("required", False) == documented[name].get("required", False), name


def test_check_mode_predicts_and_writes_nothing_then_it_is_made_and_removed(asked, tmp_path):
    extra = {"pip_python": sys.executable, "installer": "pip", "state_dir": str(tmp_path / "state"), "unit_dirs": []}
    failed, answer = call(engine, **asked, **extra, _ansible_check_mode=True)
    assert (failed, answer["changed"], answer["complete"]) == (False, True, False)
    assert not Path(asked["root"]).exists()
    assert call(engine, **asked, **extra)[1]["changed"]
    failed, answer = call(engine_info, **asked)
    assert (failed, answer["complete"], answer["source_root"]) == (False, True, answer["site_packages"])
    assert {key for key in answer if key not in ("changed", "invocation")} == set(yaml.safe_load(engine_info.RETURN))
    failed, answer = call(engine, **asked, **extra, state="absent")
    assert (failed, answer["changed"], answer["removed"]) == (False, True, [answer["dir"]])
    assert set(yaml.safe_load(engine.RETURN)) == {key for key in answer if key not in ("changed", "invocation")}
    assert not call(engine, **asked, **extra, state="absent")[1]["changed"]


def test_what_is_in_the_way_is_a_message_and_the_lock_is_not_in_the_log(asked):
    failed, answer = call(engine_info, **{**asked, "space_mib": 10**9})
    assert failed
    assert "nothing was downloaded or changed" in answer["msg"]
    assert asked["lock"] not in json.dumps(answer)
    assert call(engine_info, **{**asked, "space_mib": 10**9}, required=False)[1]["launch_why"]
