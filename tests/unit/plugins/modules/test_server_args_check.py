"""The module server_args_check: argv or args, exclusive; fails where the report blocks."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils import basic
from ansible_collections.inferops.sglang.plugins.modules import server_args_check as module


@pytest.fixture
def call(monkeypatch, capsys):
    def run(**params):
        text = json.dumps({"ANSIBLE_MODULE_ARGS": params})
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", text.encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        with pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.wheel
def test_arguments_by_name_are_rendered_and_checked(call, wheel, fixtures):
    got = call(
        args={"model_path": "m", "pp_size": 8, "disable_cuda_graph": True},
        source_root=str(wheel("0.5.23")),
        model_config_path=str(fixtures / "args" / "kimi_k25.json"),
        facts={"platform": "cuda", "sm": 120, "gpu_count": 8, "gpu_memory_mib": 97887},
    )
    assert got["failed"]
    assert got["argv"] == ["--model-path", "m", "--pp-size", "8", "--disable-cuda-graph"]
    assert {"SGA301", "SGA310"} <= {finding["code"] for finding in got["findings"]}


@pytest.mark.wheel
@pytest.mark.parametrize(("label", "name"), [({}, "args"), ({"args_label": "sglang_service_args"}, "sglang_service_args")])
def test_a_finding_names_the_field_that_was_given(call, wheel, label, name):
    given = {"model_path": "m", "pp_size": 8, "reasoning_parser": "nope"}
    got = call(args=given, source_root=str(wheel("0.5.23")), facts={"gpu_count": 8}, **label)
    assert got["failed"]
    where = {finding["code"]: finding["where"] for finding in got["findings"]}
    assert where == {"SGA103": f"{name}.reasoning_parser"}


@pytest.mark.wheel
def test_accepted_findings_do_not_fail(call, wheel, fixtures):
    got = call(
        argv=["--model-path", "m", "--pp-size", "8", "--disable-cuda-graph"],
        source_root=str(wheel("0.5.23")),
        model_config_path=str(fixtures / "args" / "kimi_k25.json"),
        facts={"platform": "cuda", "sm": 120, "gpu_count": 8, "gpu_memory_mib": 97887},
        accept=[{"code": "SGA301", "reason": "a"}, {"code": "SGA310", "reason": "b"}],
    )
    assert not got.get("failed"), got
    assert got["changed"] is False
    assert got["report"]["changed"]["disable_overlap_schedule"]["to"] is True
    assert not got["blocking"]


@pytest.mark.parametrize("params", [{}, {"argv": ["--x"], "args": {"a": 1}}])
def test_argv_and_args_exclude_each_other(call, params):
    got = call(source_root="/nowhere", **params)
    assert got["failed"]
    assert "argv" in got["msg"]


def test_no_source_is_one_clear_message(call):
    got = call(argv=["--x"], source_root="/nowhere")
    assert got["failed"]
    assert got["msg"].startswith("no SGLang source")
