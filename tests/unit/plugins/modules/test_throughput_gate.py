# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module throughput_gate in its own process, as Ansible runs it: documentation equals arguments, check mode puts no load."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.inferops.sglang.plugins.modules import gpu_info, throughput_gate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "module_utils" / "_core" / "gate"))
from paced_server import Pace, serving

PLAN = {"input_tokens": 8, "output_tokens": 10, "min_seconds_per_point": 0.2, "max_seconds_per_point": 3}


def call(module, **args):
    """Run a module's main and return (failed, answer)."""
    out = io.StringIO()
    with patch_module_args(args), redirect_stdout(out), pytest.raises(SystemExit) as ended:
        module.main()
    return ended.value.code != 0, json.loads(out.getvalue())


def gate(url, folder, limit, **extra):
    plan = {**PLAN, "points": [{"concurrency": 1, "min_output_tokens_per_s": limit}]}
    return call(throughput_gate, base_url=url, out_dir=str(folder), plan=plan, **extra)


def test_verdict_decides_and_can_be_told_not_to(tmp_path):
    with serving(Pace(ttft_s=0.05, itl_s=0.002)) as url:
        failed, answer = gate(url, tmp_path / "a", 1)
        assert (failed, answer["verdict"], answer["changed"]) == (False, "pass", False)
        assert Path(answer["report"]).exists()
        failed, answer = gate(url, tmp_path / "b", 1e6)
        assert (failed, answer["verdict"]) == (True, "fail")
        assert "min_output_tokens_per_s: limit 1e+06" in answer["msg"]
        failed, answer = gate(url, tmp_path / "c", 1e6, fail_on=[])
        assert (failed, answer["verdict"]) == (False, "fail")


def test_start_then_collect(tmp_path):
    with serving(Pace(ttft_s=0.05, itl_s=0.002)) as url:
        failed, started = gate(url, tmp_path, 1, wait=False)
        assert not failed
        assert "verdict" not in started
        failed, answer = gate(url, tmp_path, 1, run_id=started["run_id"])
        assert (failed, answer["verdict"]) == (False, "pass")


def test_check_mode_puts_no_load(tmp_path):
    pace = Pace()
    with serving(pace) as url:
        failed, answer = gate(url, tmp_path / "out", 1, _ansible_check_mode=True)
    assert not failed
    assert "would load" in answer["message"]
    assert pace.seen == []
    assert not (tmp_path / "out").exists()


def test_unknown_limit_is_named_also_in_check_mode(tmp_path):
    plan = {"points": [{"concurrency": 1, "min_tokens": 1}]}
    args = {"base_url": "http://127.0.0.1:9", "out_dir": str(tmp_path / "out"), "plan": plan}
    for extra in ({}, {"_ansible_check_mode": True}):
        failed, answer = call(throughput_gate, **args, **extra)
        assert failed
        assert "min_tokens is not a limit of the gate" in answer["msg"]


def test_gpu_info_without_a_card_says_unknown():
    failed, answer = call(gpu_info)
    assert not failed
    if not answer["available"]:
        assert answer["reason"]
        assert answer["facts"] == {}


@pytest.mark.parametrize("module", [throughput_gate, gpu_info], ids=lambda module: module.__name__.rpartition(".")[2])
def test_documentation_equals_arguments(module):
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    specs = {}

    class Caught(Exception):
        """Stops main once its arguments are known."""

    def keep(argument_spec, **_):
        specs.update(argument_spec)
        raise Caught

    original, module.AnsibleModule = module.AnsibleModule, keep
    try:
        with pytest.raises(Caught):
            module.main()
    finally:
        module.AnsibleModule = original
    assert set(documented) == set(specs)
    for name, spec in specs.items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert documented[name].get(key) == spec.get(key), (name, key)
