"""The module server_args_diff: reports, and does not fail because of differences."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils import basic
from ansible_collections.inferops.sglang.plugins.modules import server_args_diff as module


@pytest.mark.wheel
def test_an_upgrade_that_breaks_the_command_line_is_reported(monkeypatch, capsys, wheel):
    params = {
        "from_source": str(wheel("0.5.12")),
        "to_source": str(wheel("0.5.23")),
        "argv": ["--model-path", "m", "--stream-output"],
    }
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": params}).encode())
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    with pytest.raises(SystemExit):
        module.main()
    got = json.loads(capsys.readouterr().out)
    assert not got.get("failed"), got
    assert got["changed"] is False
    assert got["breaks"] is True
    assert got["removed"]["--stream-output"] == "--incremental-streaming-output"
    assert [finding["code"] for finding in got["findings"] if finding["level"] == "error"] == ["SGA601"]
    assert got["rewritten"]["argv"] == ["--model-path", "m", "--incremental-streaming-output"]
