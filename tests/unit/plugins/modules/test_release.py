# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules release and release_info: documentation equals arguments, refusals are messages and leave no trace."""

from __future__ import annotations

import io
import json
import socket
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import OPTIONAL, REQUIRED, ReleaseSpec
from ansible_collections.inferops.sglang.plugins.modules import release, release_info

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "module_utils" / "_core"))
from release.releases import spec_dict

ABSENT = "/nonexistent/inferops"


def call(module, **args):
    """Run a module's main and return (failed, answer)."""
    out = io.StringIO()
    with patch_module_args(args), redirect_stdout(out), pytest.raises(SystemExit) as ended:
        module.main()
    return ended.value.code != 0, json.loads(out.getvalue())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def places(tmp_path):
    return {"state_dir": str(tmp_path / "state"), "unit_dir": str(tmp_path / "units")}


def test_documentation_and_arguments_are_the_same():
    documented = yaml.safe_load(release.DOCUMENTATION)["options"]
    arguments = release.argument_spec()
    assert documented.keys() == arguments.keys()
    for name, argument in arguments.items():
        assert argument["type"] == documented[name]["type"], name
        assert argument.get("choices") == documented[name].get("choices"), name
        assert argument.get("default") == documented[name].get("default"), name
    assert documented["spec"]["suboptions"].keys() == {**REQUIRED, **OPTIONAL}.keys()


def test_check_mode_predicts_a_first_deployment_and_writes_nothing(places, tmp_path):
    # The real host is asked who listens, and the demo's host may well serve on this machine.
    spec = spec_dict(port=free_port(), front={"kind": "socket_proxy", "listen": f"127.0.0.1:{free_port()}"})
    failed, answer = call(release, spec=spec, _ansible_check_mode=True, **places)
    assert not failed
    assert (answer["changed"], answer["action"]) == (True, "deploy")
    assert answer["release"] == ReleaseSpec.from_dict(spec).id
    assert "until it serves" in answer["forecast_text"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "state is present but all of the following are missing: spec"),
        ({"state": "rolled_back"}, "state is rolled_back but all of the following are missing: instance"),
        ({"state": "rolled_back", "instance": "kimi"}, "instance kimi has no release to go back to"),
        ({"spec": {**spec_dict(), "argw": []}}, "argw is not a key of spec"),
        ({"spec": {**spec_dict(), "plan": {"points": [{"concurrency": 1, "min_tokens": 3}]}}}, "min_tokens"),
    ],
)
def test_a_refusal_is_a_message_and_leaves_no_trace(args, message, places):
    failed, answer = call(release, **args, **places)
    assert failed
    assert message in answer["msg"]
    assert not Path(places["unit_dir"]).exists()
    assert not (Path(places["state_dir"]) / "kimi" / "releases").exists()


def test_the_state_of_an_instance_that_was_never_deployed(places):
    failed, answer = call(release_info, instance="kimi", **places)
    assert not failed
    assert answer["changed"] is False
    state = answer["release_info"]
    assert (state["promoted"], state["serving_unit"], state["attempt"]) == (None, None, None)
    assert answer["text"].splitlines()[1] == "promoted   nothing"
