"""The command line: exit status, JSON alone on stdout, one clear message where it cannot run."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main


@pytest.mark.wheel
@pytest.mark.parametrize("form", ["text", "json", "junit", "github"])
def test_a_refusal_is_status_1_in_every_format(wheel, capsys, form):
    status = main(["check", "--source", str(wheel("0.5.23")), "--format", form, "--", "--model-path", "m", "--pp", "8"])
    out = capsys.readouterr().out
    assert status == 1
    assert "SGA102" in out
    if form == "json":
        assert json.loads(out)["outcome"] == "parse_error"


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--source", "/nowhere", "--", "--x"],
        ["check", "--source", "/nowhere", "--live", "python3", "--", "--x"],
        ["check", "--source", "/nowhere", "--accept", "SGA301", "--", "--x"],
        ["check", "--source", "/nowhere", "--facts", "/nowhere/facts.json"],
        ["flags", "--source", "/nowhere"],
        ["diff", "--from", "/nowhere", "--to", "/nowhere"],
    ],
)
def test_what_cannot_run_is_status_2_with_a_reason(capsys, words):
    assert main(words) == 2
    text = capsys.readouterr()
    assert text.out == ""
    assert "where:" in text.err
    assert "do:" in text.err


@pytest.mark.wheel
def test_the_flag_table_as_json(wheel, capsys):
    assert main(["flags", "--source", str(wheel("0.5.12")), "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["sglang_version"] == "0.5.12"
    assert {"--pp-size", "--pipeline-parallel-size"} in [set(flag["strings"]) for flag in table["flags"]]
