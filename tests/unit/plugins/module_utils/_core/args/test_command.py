"""The command line: exit status, JSON alone on stdout, one clear message where it cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

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


LAUNCHER = Path(__file__).resolve().parents[6] / "tools" / "inferops"
K2 = ["--model-path", "m", "--pp-size", "8"]


@pytest.mark.wheel
def test_explain_takes_a_topic_before_and_the_arguments_behind_dashes(wheel, capsys):
    words = ["explain", "disable_overlap_schedule", "--source", str(wheel("0.5.23")), "--format", "json", "--", *K2]
    assert main(words) == 0
    sites = json.loads(capsys.readouterr().out)["sites"]
    assert [site["source"] for site in sites if site["decides"]]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["check", "--source", "/nowhere", "--model-path", "m"], "the server's arguments come after --"),
        (["check", "--source", "/nowhere", "stray", "--", "--model-path", "m"], "stray"),
        (["flags", "--source", "/nowhere", "--", "stray"], "stray"),
    ],
)
def test_words_that_belong_nowhere_are_named(capsys, words, hint):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.wheel
@pytest.mark.parametrize("name", ["srt/server_args.py", "srt/arg_groups/overrides.py"])
def test_a_damaged_wheel_is_status_2_and_named(wheel, tmp_path, capsys, name):
    whole = wheel("0.5.23")
    with zipfile.ZipFile(whole) as archive:
        start = archive.getinfo(f"sglang/{name}").header_offset + 200
    content = bytearray(whole.read_bytes())
    content[start : start + 1000] = bytes(1000)
    broken = tmp_path / whole.name
    broken.write_bytes(content)

    assert main(["check", "--source", str(broken), "--", *K2]) == 2
    text = capsys.readouterr()
    assert text.out == ""
    assert f"{whole.name} is damaged" in text.err
    assert name in text.err


@pytest.mark.wheel
@pytest.mark.parametrize("closed", ["reader gone", "disk full"])
def test_output_that_goes_nowhere_never_turns_a_refusal_into_success(wheel, closed):
    # R93: failed and could not run are told apart by the exit status alone.
    words = [str(LAUNCHER), "check", "--source", str(wheel("0.5.23")), "--format", "json", "--", *K2, "--nope"]
    environ = dict(os.environ, INFEROPS_PYTHON=sys.executable)
    if closed == "disk full":
        with Path("/dev/full").open("w") as full:
            assert subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=environ, check=False).returncode == 2
        return
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, env=environ, check=False).returncode == 1
    os.close(writer)


def test_a_fault_of_ours_is_status_2(monkeypatch, capsys):
    # R93
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args import source

    monkeypatch.setattr(source, "open_source", lambda path: 1 / 0)
    assert main(["flags", "--source", "x"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
