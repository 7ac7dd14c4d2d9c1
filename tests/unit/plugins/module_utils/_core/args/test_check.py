"""The check on real releases: reported cases, the story's command line, levels and acceptance."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from known_hosts import RTX_PRO_6000 as FACTS

GOOD = [
    "--model-path",
    "m",
    "--trust-remote-code",
    "--pp-size",
    "8",
    "--pp-async-batch-depth",
    "8",
    "--attention-backend",
    "triton",
]
BAD = ["--model-path", "m", "--trust-remote-code", "--pp-size", "8", "--disable-cuda-graph"]
TODAY = datetime.date(2026, 12, 1)
VERSIONS = ("0.5.12", "0.5.23")

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def run(wheel, fixtures):
    trees = {}
    config = json.loads((fixtures / "args" / "kimi_k25.json").read_text())

    def call(version, argv, **kwargs):
        if version not in trees:
            trees[version] = open_source(wheel(version))
        given = {"facts": FACTS, "model_config": config, "env": {}, "today": TODAY} | kwargs
        return check(argv, source_root=trees[version], **given)

    return call


def codes(report, *levels):
    return [finding.code for finding in report.findings if not levels or finding.level in levels]


def one(report, code):
    found = [finding for finding in report.findings if finding.code == code]
    assert len(found) == 1, report.text()
    return found[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_profile_of_the_story_is_clean(run, version):
    report = run(version, GOOD, expect={"decode_graphs": "enabled", "pp_async_batch_depth": 8, "attention_backend": "triton"})
    assert report.outcome == "ok", report.text()
    assert codes(report, "error", "advice") == []
    assert (report.blocking, report.exit_status) == (False, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_r7_r11_a_leftover_graph_flag_blocks_and_says_what_it_costs(run, wheel, version):
    """It parses and starts, so only the check can say what it costs (R7, R11)."""
    report = run(version, BAD)
    assert report.outcome == "ok", report.text()
    assert {"SGA301", "SGA310"} == set(codes(report, "error", "advice"))
    finding = one(report, "SGA301")
    assert finding.level == "error"
    assert "24.7" in finding.why
    assert "35.6" in finding.why
    assert f"nothing in SGLang {version} forces decode graphs off" in finding.why
    rel, _, line = finding.source.rpartition(":")
    lines = open_source(wheel(version)).read(rel).splitlines()
    assert "--disable-cuda-graph" in "".join(lines[int(line) - 1 : int(line) + 2])
    assert report.exit_status == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--disable-cuda-graph"],
        ["--disable-decode-cuda-graph"],
        ["--cuda-graph-backend-decode", "disabled"],
        ["--cuda-graph-backend-decode=disabled"],
        ["--cuda-graph-config", '{"decode": {"backend": "disabled"}}'],
    ],
)
def test_r7_every_spelling_is_seen(run, words):
    report = run("0.5.23", [*GOOD, *words])
    assert "vestigial" in one(report, "SGA301").why


def test_conditions_are_denied_as_one_reads_them(run):
    guards = {change["guard"] or "always" for change in run("0.5.23", GOOD).changed.values()}
    assert [guard for guard in guards if "not (not" in guard or re.fullmatch(r"not \(\S+\)", guard)] == []
    assert any(guard.startswith("not ") for guard in guards)


def test_a_stronger_flag_that_keeps_decode_graphs_on_is_not_accused(run):
    report = run("0.5.23", [*GOOD, "--disable-cuda-graph", "--cuda-graph-backend-decode", "full"])
    assert "SGA301" not in codes(report)
    assert report.effective["cuda_graph_config.decode.backend"] == "full"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_flag_that_is_forced_anyway_is_redundant_and_names_the_place(run, version):
    argv = ["--model-path", "m", "--tp-size", "8", "--attention-backend", "torch_native", "--disable-cuda-graph"]
    finding = one(run(version, argv), "SGA301")
    assert "redundant" in finding.why
    assert "--attention-backend" in finding.why
    assert ".py:" in finding.why


@pytest.mark.parametrize("version", VERSIONS)
def test_decode_graphs_forced_off_by_another_flag_is_advice(run, version):
    report = run(version, ["--model-path", "m", "--tp-size", "8", "--attention-backend", "torch_native"])
    assert one(report, "SGA302").flag == "--attention-backend"


@pytest.mark.parametrize("version", VERSIONS)
def test_on_a_processor_no_graphs_are_missed(run, version):
    report = run(version, ["--model-path", "m", "--device", "cpu", "--attention-backend", "torch_native", "--disable-cuda-graph"])
    assert not {"SGA301", "SGA302"} & set(codes(report, "advice"))
    assert not report.blocking


@pytest.mark.parametrize("version", VERSIONS)
def test_an_accepted_finding_lets_pass_and_is_kept(run, version):
    accept = [{"code": "SGA301", "reason": "as found that night"}, {"code": "SGA310", "reason": "as found that night"}]
    report = run(version, BAD, accept=accept)
    assert not report.blocking
    assert one(report, "SGA301").accepted == {"code": "SGA301", "reason": "as found that night"}
    assert "as found that night" in report.text()
    assert report.as_dict()["findings"][0]["accepted"] is not None


def test_an_acceptance_of_what_blocks_nothing_says_so(run):
    report = run("0.5.23", GOOD, accept=[{"code": "SGA210", "reason": "x"}])
    assert "SGA210" in codes(report, "override")
    assert "blocks nothing" in one(report, "SGA901").message
    report = run("0.5.23", GOOD, accept=[{"code": "SGA302", "reason": "x"}])
    assert "nothing of that code was found" in one(report, "SGA901").message


def test_an_expired_acceptance_blocks_again(run):
    accept = [
        {"code": "SGA301", "reason": "x", "expires": "2026-11-30"},
        {"code": "SGA310", "reason": "x", "expires": "2026-12-01"},
    ]
    report = run("0.5.23", BAD, accept=accept)
    assert [finding.code for finding in report.findings if finding.blocks] == ["SGA301"]
    assert "SGA902" in codes(report)


@pytest.mark.parametrize(
    "entry",
    [
        {"code": "SGA101", "reason": "x"},
        {"code": "SGA201", "reason": "x"},
        {"code": "SGA301", "reason": " "},
        {"code": "SGA31", "reason": "x"},
        {"code": "SGA301", "reason": "x", "until": "2027-01-01"},
        {"code": "SGA301", "reason": "x", "expires": "soon"},
        {"code": "*", "reason": "x"},
    ],
)
def test_what_cannot_be_accepted_is_refused(run, entry):
    with pytest.raises(InferopsError) as caught:
        run("0.5.23", GOOD, accept=[entry])
    assert caught.value.do


@pytest.mark.parametrize("version", VERSIONS)
def test_r2_an_underscore_is_answered_with_the_flag(run, version):
    """An unknown flag is answered with the known one (R2)."""
    report = run(version, ["--model-path", "m", "--reasoning_parser", "kimi_k2"])
    finding = one(report, "SGA101")
    assert report.outcome == "parse_error"
    assert "did you mean --reasoning-parser?" in finding.message
    assert finding.do == "write --reasoning-parser kimi_k2"
    assert finding.flag == "--reasoning_parser"
    assert report.exit_status == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_r101_the_short_pipeline_flag_is_ambiguous_and_tp_is_not(run, version):
    """The short spelling of community docs never parses (R101)."""
    report = run(version, ["--model-path", "m", "--tp", "1", "--pp", "8"])
    finding = one(report, "SGA102")
    for candidate in ("--pp-size", "--pp-max-micro-batch-size", "--pp-async-batch-depth"):
        assert candidate in finding.message
    assert finding.do == "write --pp-size 8"
    fine = run(version, ["--model-path", "m", "--tp", "1", "--pp-size", "8", "--pp-async-batch-depth", "8"])
    assert fine.outcome == "ok"
    assert one(fine, "SGA111").do == "write --tp-size"
    assert not fine.blocking


@pytest.mark.parametrize(
    ("words", "code", "flag"),
    [
        (["--cuda-graph-max-bs", "16"], "SGA102", "--cuda-graph-max-bs"),
        (["--attention-backend", "nope"], "SGA103", "--attention-backend"),
        (["--tp-size", "two"], "SGA103", "--tp-size"),
        (["--pp-size"], "SGA104", "--pp-size"),
        (["stray"], "SGA101", "stray"),
        (["--pp-size", "8", "--config", "engine.txt"], "SGA105", "--config"),
        (["--nsa-prefill-backend", "fa3"], "SGA101", "--nsa-prefill-backend"),
    ],
)
def test_what_the_parser_refuses(run, words, code, flag):
    report = run("0.5.23", ["--model-path", "m", *words])
    finding = one(report, code)
    assert (finding.level, finding.flag, report.outcome) == ("error", flag, "parse_error")
    assert finding.do


@pytest.mark.parametrize("program", [["python3", "-m", "sglang.launch_server"], ["/opt/venv/bin/sglang", "serve"]])
def test_a_pasted_program_is_named_and_nothing_else_is_blamed(run, program):
    report = run("0.5.23", [*program, *GOOD])
    assert codes(report) == ["SGA101"]
    assert " ".join(program) in report.findings[0].message
    assert "before the first flag" in report.findings[0].do


def test_a_missing_model_path_is_named(run):
    report = run("0.5.23", ["--tp-size", "1"])
    assert one(report, "SGA104").flag == "--model-path"


def test_every_unknown_flag_is_named_at_once(run):
    report = run("0.5.23", ["--model-path", "m", "--nope", "--reasoning_parser", "auto"])
    assert codes(report) == ["SGA101", "SGA101"]


def test_deprecated_flags_name_their_successor(run):
    report = run("0.5.23", ["--model-path", "m", "--tp-size", "8", "--enable-dp-attention", "--dp-size", "8"])
    assert "--attn-dp-size" in one(report, "SGA120").do


def test_one_field_set_twice_is_advice(run):
    report = run("0.5.23", [*GOOD, "--pipeline-parallel-size", "4"])
    assert "4" in one(report, "SGA110").message
    assert report.blocking


def test_pp7_on_eight_cards_says_that_one_is_idle(run):
    report = run("0.5.23", ["--model-path", "m", "--pp-size", "7", "--pp-async-batch-depth", "7"])
    finding = one(report, "SGA402")
    assert "7 of the 8 cards" in finding.message
    assert report.blocking


def test_more_ranks_than_cards_is_an_error(run):
    report = run("0.5.23", ["--model-path", "m", "--pp-size", "8", "--tp-size", "2", "--pp-async-batch-depth", "8"])
    assert "needs 16 cards, the host has 8" in one(report, "SGA401").message


def test_without_the_fact_nothing_is_said_about_cards(run):
    report = run("0.5.23", ["--model-path", "m", "--pp-size", "7", "--pp-async-batch-depth", "7"], facts={"sm": 120})
    assert not {"SGA401", "SGA402"} & set(codes(report))


@pytest.mark.parametrize(
    ("partition", "found"), [("8,8,8,8,8,8,8,8", True), ("8,8,8,8,8,8,13", True), ("7,7,7,8,8,8,8,8", False)]
)
def test_r18_the_layer_partition_must_fit(run, partition, found):
    report = run("0.5.23", GOOD, env={"SGLANG_PP_LAYER_PARTITION": partition})
    assert ("SGA403" in codes(report, "error")) is found


def test_depth_0_is_advice_and_speaks_of_measuring(run):
    finding = one(run("0.5.23", BAD), "SGA310")
    assert finding.level == "advice"
    assert finding.source.startswith("srt/arg_groups/fields/parallel.py:")
    assert "measure" in finding.why


@pytest.mark.parametrize("version", VERSIONS)
def test_an_expectation_the_arguments_contradict_is_an_error(run, version):
    report = run(version, BAD, expect={"decode_graphs": "enabled"})
    assert one(report, "SGA501").level == "error"


def test_an_expectation_of_something_unknown_is_refused(run):
    with pytest.raises(InferopsError) as caught:
        run("0.5.23", GOOD, expect={"decode_graph": "enabled"})
    assert "decode_graphs" in caught.value.do


def test_overrides_name_place_and_flag(run):
    report = run("0.5.23", GOOD)
    finding = next(f for f in report.findings if f.code == "SGA210" and "disable_overlap_schedule" in f.message)
    assert "--pp-size" in finding.message
    assert ".py:" in finding.source


def test_a_value_that_led_to_its_own_replacement_is_not_to_be_removed(run):
    # dp_size becomes attn_dp_size: without the flag there would be no attention replicas at all.
    report = run("0.5.23", ["--model-path", "m", "--tp-size", "8", "--enable-dp-attention", "--dp-size", "8"])
    finding = next(f for f in report.findings if f.code == "SGA210" and f.flag == "--dp-size")
    assert finding.do is None


def test_a_refusal_without_words_shows_its_condition(run):
    report = run("0.5.23", ["--model-path", "m", "--tp-size", "8", "--attn-dp-size", "3"])
    assert "assert cfg.tp_size % cfg.attn_dp_size == 0" in one(report, "SGA201").why


def test_a_setting_given_as_json_is_asked_for_not_changed(run):
    config = '{"decode": {"backend": "full", "max_bs": 7}, "prefill": {"backend": "disabled"}}'
    report = run("0.5.23", [*GOOD, "--cuda-graph-config", config, "--cuda-graph-max-bs-decode", "9"])
    assert report.effective["cuda_graph_config.decode.max_bs"] == 7
    assert not {"cuda_graph_config.decode.max_bs", "cuda_graph_config.prefill.backend"} & set(report.changed)


def test_the_report_is_json_and_keeps_secrets_out(run):
    argv = [*GOOD, "--api-key", "s3cr3t-value", "--admin-api-key", "s3cr3t-value2"]
    text = json.dumps(run("0.5.23", argv).as_dict())
    assert "s3cr3t" not in text
    for bad in (["--api_key", "s3cr3t-value"], ["--api-key", "s3cr3t-value", "--api-key", "s3cr3t-other"]):
        report = run("0.5.23", [*GOOD, *bad])
        assert "s3cr3t" not in json.dumps(report.as_dict()) + report.text() + report.junit() + report.github()


def test_a_config_file_counts_like_argv_and_one_out_of_reach_is_said(run):
    def missing(path):
        raise FileNotFoundError(2, "No such file or directory", path)

    argv = [*GOOD, "--config", "engine.yaml"]
    report = run("0.5.23", argv, read_text=lambda _: "cuda-graph-backend-decode: disabled\n")
    assert "SGA301" in codes(report, "error")
    for words in (argv, ["--config", "engine.yaml"]):  # the model may stand in the file
        report = run("0.5.23", words, read_text=missing)
        assert (codes(report), report.outcome, report.exit_status) == (["SGA106"], "unknown", 3)
        assert (report.effective, report.changed) == ({}, {})
        assert "page_size" in [entry["field"] for entry in report.undecided]
    refused = run("0.5.23", [*argv, "--no-such-flag"], read_text=missing)
    assert "SGA101" in codes(refused, "error")


def test_a_text_that_is_no_json_is_refused_as_sglang_reads_it(run):
    report = run("0.5.23", [*GOOD, "--json-model-override-args", '{"a":'])
    assert (report.outcome, report.exit_status) == ("fatal", 1)
    assert "Expecting value" in report.message


def test_formats(run):
    import xml.etree.ElementTree as ET

    report = run("0.5.23", BAD)
    suite = ET.fromstring(report.junit())
    assert int(suite.get("failures")) == sum(finding.blocks for finding in report.findings)
    lines = report.github().splitlines()
    assert sum(line.startswith("::error") for line in lines) == sum(finding.blocks for finding in report.findings)
    assert report.text().splitlines()[0].split()[0] in ("SGA301", "SGA310")


def test_every_code_is_documented(fixtures):
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.findings import CODES

    text = (fixtures.parents[1] / "docs" / "findings.md").read_text()
    assert [code for code, kind in CODES.items() if f"## {code} {kind.title} (" not in text] == []
