"""Spelling help and history: what is offered means the same, and when a flag came and went is the releases' own."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import Flag, FlagTable, read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.history import FLAGS, RELEASES
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.other_engines import FOREIGN
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rules.unknown_flag import answer
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.suggest import near_name, successors, suggest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.versions import (
    added_later,
    ambiguous_from,
    history,
    later_fits,
    release_key,
    removed,
)

NAMES = [
    "--model-path",
    "--enable-metrics",
    "--disable-radix-cache",
    "--disable-cuda-graph",
    "--disable-cuda-graph-padding",
    "--fp8-gemm-backend",
    "--fp4-gemm-backend",
    "--bf16-gemm-backend",
    "--tokenizer-mode",
    "--max-loaded-loras",
    "--reasoning-parser",
    "--tp-size",
    "--dp-size",
    "--attention-backend",
    "--prefill-attention-backend",
    "--context-length",
    "--max-prefill-tokens",
    "--max-total-tokens",
    "--dsa-prefill-backend",
    "--host",
    "--port",
]


def table(names=NAMES):
    flags = tuple(Flag((name,), name[2:].replace("-", "_")) for name in names)
    return FlagTable("0.5.23", "", flags, {flag.dest: None for flag in flags})


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--reasoning_parser", "--reasoning-parser"),  # (R2)
        ("-tp-size", "--tp-size"),
        ("--Context-Length", "--context-length"),
        ("--contextlength", "--context-length"),
        ("--context-lenght", "--context-length"),
        ("--atention-backend", "--attention-backend"),
        ("--attention-backends", "--attention-backend"),
        ("--max-loaded-lora", "--max-loaded-loras"),
        ("--enable-radix-cache", None),  # the opposite
        ("--disable-metrics", None),
        ("--enable-cuda-graph", None),
        ("--no-disable-cuda-graph", None),
        ("--fp6-gemm-backend", None),
        ("--bf15-gemm-backend", None),
        ("--pp-size", None),
        ("--ep-size", None),
        ("--nsa-prefill-backends", None),
        ("--decode-attention-backend", None),
        ("--max-decode-tokens", None),
        ("--tokenizer-model", None),  # `model` is a word of its own, no slip of `mode`
        ("--post", None),
        ("--model", None),
        ("--frobnicate", None),
    ],
)
def test_what_is_offered_means_the_same(word, meant):
    assert suggest(word, table()) == meant


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.12", "0.5.23"])
def test_a_flag_taken_away_is_never_answered_with_another_parameter(wheel, version):
    whole = read_flags(open_source(wheel(version)))
    wrong = []
    for gone in whole.flags:
        left = dataclasses.replace(whole, flags=tuple(flag for flag in whole.flags if flag.dest != gone.dest))
        for string in gone.strings:
            offered = suggest(string, left)
            known = {new.partition("=")[0] for new in successors(string)}
            if offered is not None and offered.partition("=")[0] not in known:
                wrong.append((string, offered))
    assert wrong == []


def test_history_is_in_the_order_of_the_releases():
    assert list(RELEASES) == sorted(RELEASES, key=release_key)
    assert all(0 <= span.first <= span.last < len(RELEASES) for spans in history().values() for span in spans)
    assert FLAGS.count("\n") > 80


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.10", "0.5.19", "0.5.23"])
def test_history_and_release_agree(wheel, version):
    at = RELEASES.index(version)
    told = {name for name, spans in history().items() if any(span.first <= at <= span.last for span in spans)}
    assert told == {string for flag in read_flags(open_source(wheel(version))).flags for string in flag.spellings}


def test_when_a_flag_came_and_went():
    assert added_later("--pp-async-batch-depth", "0.5.6.post2") == "0.5.7"
    assert added_later("--pp-async-batch-depth", "0.5.7") is None
    assert added_later("--pp-async-batch-depth", "unknown") is None
    assert removed("--cuda-graph-max-bs", "0.5.20").removal() == "removed in 0.5.20 (deprecated from 0.5.14)"
    assert removed("--cuda-graph-max-bs", "0.5.19") is None
    assert removed("--pp-size", "9.9") is not None  # gone from a release newer than the table
    assert later_fits("--pp-async", "0.5.6") == "--pp-async-batch-depth"
    assert ambiguous_from("--enable-dp-att", "0.5.10")[0] == "0.5.11"
    assert ambiguous_from("--tp", "0.5.10") is None


def test_names_with_underscores():
    assert near_name("SGLANG_PP_LAYER_PARTITON", {"SGLANG_PP_LAYER_PARTITION", "SGLANG_PORT"}) == "SGLANG_PP_LAYER_PARTITION"
    assert near_name("SGLANG_DISABLE_TP", {"SGLANG_ENABLE_TP"}) is None


def test_every_field_offered_for_another_engine_is_one_some_release_has():
    fields = {name[2:].replace("-", "_") for name in history()} | {"tp_size", "pp_size", "dp_size", "ep_size"}
    assert {field for foreign in FOREIGN.values() for field in foreign.fields} <= fields
    # What SGLang has itself is no other engine's.
    now = {name for name, spans in history().items() if spans[-1].gone is None}
    assert [name for name in FOREIGN if name in now] == []


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("version", "argv", "code", "message", "do"),
    [
        (
            "0.5.6.post2",
            ["--pp-async-batch-depth", "2"],
            "SGA101",
            "unknown before 0.5.7, installed is 0.5.6.post2",
            "0.5.7",
        ),  # (R10)
        (
            "0.4.6",
            ["--max-loaded-loras", "1"],
            "SGA101",
            "unknown before 0.4.10.post2, installed is 0.4.6",
            "0.4.10.post2",
        ),  # (R5)
        (
            "0.5.5",
            ["--reasoning_parser", "kimi_k2"],
            "SGA101",
            "did you mean --reasoning-parser?",
            "--reasoning-parser kimi_k2",
        ),  # (R2)
        (
            "0.5.20",
            ["--cuda-graph-max-bs", "16"],
            "SGA102",
            "removed in 0.5.20 (deprecated from 0.5.14)",
            "--cuda-graph-max-bs-decode 16",
        ),  # (R6)
        ("0.5.23", ["--pp", "8"], "SGA102", "--pp-size, --pp-max-micro-batch-size", "--pp-size 8"),  # (R101)
        ("0.5.23", ["--gpu-memory-utilization", "0.9"], "SGA101", "is vLLM's", "write --mem-fraction-static (the fraction"),
        ("0.5.23", ["--max-model-len", "4096"], "SGA101", "is vLLM's", "write --context-length 4096"),
        ("0.5.23", ["--max-batch-size", "8"], "SGA101", "is TensorRT-LLM's", "write --max-running-requests 8"),
        ("0.5.23", ["--num-shard", "8"], "SGA101", "is TGI's", "write --tp-size 8"),
        ("0.5.23", ["-ngl", "99"], "SGA101", "is llama.cpp's", "all layers are on the cards"),
        ("0.5.23", ["--cuda-graph-tc-compiler", "eager"], "SGA101", "removed in 0.5.22", "remove it"),
    ],
)
def test_a_word_the_release_has_no_flag_for_is_explained(wheel, version, argv, code, message, do):
    report = check(["--model-path", "m", *argv], source_root=wheel(version), env={})
    found = [finding for finding in report.findings if finding.code == code]
    assert message in found[0].message, found[0].text()
    assert do in found[0].do, found[0].text()
    assert report.outcome == "parse_error"


@pytest.mark.wheel
def test_a_short_form_that_a_later_release_makes_ambiguous_is_advice(wheel):
    report = check(["--model-path", "m", "--tp", "1", "--enable-dp-att"], source_root=wheel("0.5.10"), env={})
    levels = {finding.flag: (finding.level, finding.message) for finding in report.findings if finding.code == "SGA111"}
    assert levels["--tp"][0] == "info"
    assert levels["--enable-dp-att"][0] == "advice"
    assert "ambiguous from SGLang 0.5.11" in levels["--enable-dp-att"][1]


def test_an_answer_is_always_there():
    assert "inferops flags" in answer("--frobnicate", None, table()).do


@pytest.mark.wheel
def test_a_log_level_python_does_not_have_is_refused(wheel):
    for level, codes in (("trace", ["SGA103"]), ("INFO", []), ("warning", [])):
        report = check(["--model-path", "m", "--log-level", level], source_root=wheel("0.5.10"), env={})
        assert [finding.code for finding in report.findings if finding.flag == "--log-level"] == codes
