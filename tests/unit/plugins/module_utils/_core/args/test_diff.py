"""diff: what an upgrade does to a command line, and the same command line written for the new release."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.diff import diff
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.findings import CODES
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.renames import HINTS, RENAMES
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rewrite import rewrite
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from known_hosts import RTX_PRO_6000 as FACTS

# Cheap to resolve; what an upgrade does to the arguments is the same for any model.
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
MODEL = ["--model-path", "m"]
PP8 = ["--pp-size", "8", "--pp-async-batch-depth", "8", "--attention-backend", "triton", "--trust-remote-code"]

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def compare(wheel):
    done = {}

    def call(old, new, words=()):
        key = (old, new, *words)
        if key not in done:
            done[key] = diff(wheel(old), wheel(new), [*MODEL, *words], facts=FACTS, model_config=LLAMA)
        return done[key]

    return call


@pytest.fixture(scope="module")
def table(wheel):
    tables = {}

    def get(version):
        if version not in tables:
            tables[version] = read_flags(open_source(wheel(version)))
        return tables[version]

    return get


def codes(found):
    return [finding.code for finding in found.upgrade.findings]


def test_r6_a_removed_flag_that_becomes_an_ambiguous_short_form(compare):
    """A flag of the old release is a short form of two in the new one (R6)."""
    found = compare("0.5.18", "0.5.20", ["--cuda-graph-max-bs", "16"])
    first = found.upgrade.findings[0]
    assert (first.code, first.level, first.flag, first.where) == ("SGA601", "error", "--cuda-graph-max-bs", "argv[2]")
    assert "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill" in first.why
    assert "removed in 0.5.20 (deprecated from 0.5.14)" in first.message
    assert first.do == "write --cuda-graph-max-bs-decode 16"
    assert found.upgrade.argv == [*MODEL, "--cuda-graph-max-bs-decode", "16"]
    assert found.upgrade.rewritten.outcome == "ok"
    assert not found.upgrade.rewriting.stuck
    assert found.exit_status == 1 and found.breaks


# Renames that were executed on the releases: (from, to, old words, new words).
RENAMED = [
    ("0.4.9.post2", "0.5.20", ["--impl", "transformers"], ["--model-impl", "transformers"]),
    ("0.5.3", "0.5.23", ["--max-micro-batch-size", "4"], ["--pp-max-micro-batch-size", "4"]),
    ("0.4.9.post2", "0.5.3", ["--enable-deepep-moe"], ["--moe-a2a-backend", "deepep"]),
    ("0.5.3", "0.5.10", ["--oltp-traces-endpoint", "h:1"], ["--otlp-traces-endpoint", "h:1"]),
    ("0.5.3", "0.5.23", ["--nsa-prefill", "fa3"], ["--dsa-prefill-backend", "fa3"]),
    ("0.5.12", "0.5.23", ["--cuda-graph-bs", "1", "2", "4"], ["--cuda-graph-bs-decode", "1", "2", "4"]),
    ("0.5.12", "0.5.23", ["--disable-piecewise-cuda-graph"], ["--cuda-graph-backend-prefill", "disabled"]),
    ("0.5.12", "0.5.23", ["--enable-breakable-cuda-graph"], ["--cuda-graph-backend-prefill", "breakable"]),
    ("0.5.12", "0.5.20", ["--piecewise-cuda-graph-max-tokens=512"], ["--cuda-graph-max-bs-prefill=512"]),
    ("0.5.10", "0.5.23", ["--stream-output"], ["--incremental-streaming-output"]),
    ("0.5.12", "0.5.23", ["--mamba-scheduler-strategy", "no_buffer"], ["--mamba-radix-cache-strategy", "no_buffer"]),
    ("0.5.12", "0.5.23", ["--nsa-prefill-cp-mode", "in-seq-split"], ["--cp-strategy", "zigzag"]),
    ("0.5.20", "0.5.23", ["--elastic-ep-rejoin"], ["--elastic-ep-join-mode", "recover"]),
    ("0.5.12", "0.5.14", ["--trust"], ["--trust"]),
    ("0.5.14", "0.5.18", ["--trust"], ["--trust-remote-code"]),
    ("0.5.12", "0.5.23", ["--cuda-graph-max", "16"], ["--cuda-graph-max-bs-decode", "16"]),
]


@pytest.mark.parametrize(("old", "new", "words", "expected"), RENAMED)
def test_r6_a_rename_is_written_and_the_new_release_takes_it(table, old, new, words, expected):
    got = rewrite([*MODEL, *words], table(old), table(new))
    assert list(got.argv) == [*MODEL, *expected]
    parse(table(new), got.argv)
    for step in got.changed:
        assert step.origin or step.kind == "spelled", "a rename says who says so"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.5.12", "0.5.14", ["--enable-nan-detection"]),
        ("0.5.10", "0.5.23", ["--multi-item-scoring-delimiter", "5"]),
        ("0.5.12", "0.5.23", ["--enforce-piecewise-cuda-graph"]),
        ("0.5.12", "0.5.23", ["--torchao-config", "int4wo-32"]),
    ],
)
def test_what_has_no_equal_is_left_to_the_reader_and_never_guessed(compare, old, new, words):
    found = compare(old, new, words)
    assert [list(step.old) for step in found.upgrade.rewriting.stuck] == [words]
    assert found.upgrade.argv == MODEL
    assert found.exit_status == 1
    assert found.as_dict()["rewritten"]["left_to_you"][0]["from"] == words
    assert f"left to you: {' '.join(words)}" in found.text()


def test_a_value_that_is_gone_is_named(compare):
    found = compare("0.5.20", "0.5.23", ["--cuda-graph-backend-prefill", "tc_piecewise"])
    assert found.upgrade.findings[0].code == "SGA603"
    assert "tc_piecewise" in found.upgrade.findings[0].message


def test_a_short_form_that_no_longer_fits_one_flag_is_written_in_full(compare):
    found = compare("0.5.14", "0.5.18", ["--trust"])
    assert found.upgrade.findings[0].code == "SGA602"
    assert found.upgrade.findings[0].do == "write --trust-remote-code"


def test_newly_deprecated_and_still_working_is_not_a_break(compare):
    found = compare("0.5.12", "0.5.14", [*PP8, "--cuda-graph-max-bs", "16"])
    assert codes(found)[0] == "SGA604"
    assert found.exit_status == 0
    assert found.upgrade.argv[-2:] == ["--cuda-graph-max-bs-decode", "16"]


def test_the_advice_on_a_deprecated_flag_is_never_the_flag_itself(compare):
    found = compare("0.5.12", "0.5.23", ["--disable-cuda-graph"])
    told = next(finding for finding in found.upgrade.findings if finding.code == "SGA604")
    assert told.flag == "--disable-cuda-graph"
    assert told.do == "the release says: --cuda-graph-backend-{decode,prefill}=disabled"


def test_the_rewritten_command_line_resolves_as_the_old_one(compare):
    words = [*PP8, "--cuda-graph-max-bs", "16", "--disable-piecewise-cuda-graph"]
    found = compare("0.5.12", "0.5.23", words)
    assert found.upgrade.rewritten.effective["cuda_graph_config.decode.max_bs"] == 16
    assert found.upgrade.rewritten.effective["cuda_graph_config.prefill.backend"] == "disabled"
    differing = {result.field for result in found.upgrade.comparison.different}
    assert not differing & {"cuda_graph_max_bs", "cuda_graph_bs", "disable_cuda_graph", "disable_piecewise_cuda_graph"}
    assert found.upgrade.comparison.alike > 300


def test_what_the_new_release_newly_refuses_breaks(compare):
    words = ["--disaggregation-mode", "prefill", "--disaggregation-transfer-backend", "fake"]
    found = compare("0.5.3", "0.5.23", words)
    assert found.upgrade.before.outcome != "fatal"
    assert "SGA607" in codes(found)
    assert found.exit_status == 1


def test_another_default_is_said_with_how_to_keep_the_old_one(compare):
    found = compare("0.5.12", "0.5.23", PP8)
    (layout,) = [f for f in found.upgrade.findings if f.code == "SGA605" and "hicache_mem_layout" in f.message]
    assert layout.do.startswith("write --hicache-mem-layout")


@pytest.mark.parametrize("pair", [("0.4.9.post2", "0.5.3"), ("0.5.3", "0.5.10"), ("0.5.14", "0.5.18"), ("0.5.19", "0.5.20")])
def test_neighbours_of_every_shape_compare_in_every_format(compare, pair):
    found = compare(*pair, ["--tp-size", "8"])
    assert (found.old, found.new) == pair
    json.dumps(found.as_dict())
    assert int(ET.fromstring(found.junit()).get("failures")) == sum(finding.blocks for finding in found.upgrade.findings)
    assert found.github().splitlines()[-1].startswith("::notice title=inferops diff")


def test_a_release_does_not_differ_from_itself(compare, wheel):
    found = diff(wheel("0.5.12"), wheel("0.5.12"))
    assert (found.removed, found.added, found.deprecated, found.defaults, found.choices) == ({}, (), {}, {}, {})
    same = compare("0.5.12", "0.5.12", PP8).upgrade
    assert (same.findings, same.comparison.different, same.rewriting.changed, same.exit_status) == ((), (), (), 0)


def test_beside_itself_a_release_is_a_check_and_says_what_blocks(compare):
    found = compare("0.5.23", "0.5.23", ["--pp-size", "2", "--disable-cuda-graph"])
    assert found.breaks and "SGA301" in codes(found)
    assert "SGA301" not in codes(compare("0.5.20", "0.5.23", ["--pp-size", "2", "--disable-cuda-graph"]))


def test_the_upgrade_names_successors_for_the_whole_table(wheel):
    found = diff(wheel("0.5.12"), wheel("0.5.23"))
    assert found.removed["--cuda-graph-max-bs"] == "--cuda-graph-max-bs-decode"
    assert "--cuda-graph-config" in found.added
    assert "--disable-cuda-graph" in found.deprecated


def test_what_the_old_release_never_took_is_not_rewritten(compare):
    found = compare("0.5.12", "0.5.23", ["--nope"])
    assert found.upgrade.argv is None
    assert found.exit_status == 1


def test_a_secret_stays_out_of_every_format(compare):
    found = compare("0.5.12", "0.5.23", ["--api-key", "geheim", "--stream-output"])
    for text in (found.text(), json.dumps(found.as_dict()), found.junit(), found.github()):
        assert "geheim" not in text
    assert found.upgrade.argv[2:4] == ["--api-key", "…"]


def test_options_of_a_config_file_are_read_and_named_as_such(compare, tmp_path):
    path = tmp_path / "engine.yaml"
    path.write_text("cuda-graph-max-bs: 16\n")
    found = compare("0.5.12", "0.5.23", ["--tp-size", "8", "--config", str(path)])
    assert found.upgrade.findings[0].code == "SGA601"
    assert found.upgrade.findings[0].where == "the file given with --config"
    assert found.upgrade.argv == [*MODEL, "--tp-size", "8"]
    assert found.upgrade.rewritten.outcome == "ok"


def test_every_rename_leads_to_a_flag_of_some_release_and_every_name_was_one(table):
    """A literal that names what never existed helps nobody."""
    known = {
        s
        for version in ("0.4.9.post2", "0.5.3", "0.5.10", "0.5.12", "0.5.14", "0.5.18", "0.5.20", "0.5.23")
        for flag in table(version).flags
        for s in flag.strings
    }
    # Gone before or between the releases pinned here; read in the releases their origin names.
    between = {
        "--enable-flashinfer-mla",
        "--enable-flashmla",
        "--enable-flashinfer-moe",
        "--optimistic-prefill-retries",
        "--enable-flashinfer-autotune",
        "--kt-amx-weight-path",
        "--kt-amx-method",
        "--enable-gdn-replayssm-spec",
        "--monokernel-backend",
    }
    assert sorted((set(RENAMES) | set(HINTS)) - known - between) == []
    targets = {rename.new for options in RENAMES.values() for rename in options if rename.new}
    assert sorted(targets - known) == []


@pytest.mark.parametrize("form", ["text", "json", "junit", "github"])
def test_the_command_ends_with_1_where_it_breaks(wheel, capsys, form):
    words = ["diff", "--from", str(wheel("0.5.19")), "--to", str(wheel("0.5.20")), "--format", form]
    assert main([*words, "--", *MODEL, "--cuda-graph-max-bs", "16"]) == 1
    out = capsys.readouterr().out
    assert "SGA601" in out and "--cuda-graph-max-bs-decode" in out


def test_the_story_goes_from_0_5_12_to_0_5_23_unchanged(wheel, fixtures):
    """The shipped PP8 arguments need no rewriting, and nothing newly blocks them."""
    words = [*MODEL, *PP8, "--mem-fraction-static", "0.85", "--context-length", "131072", "--enable-metrics"]
    config = json.loads((fixtures / "models" / "kimi_k2_6" / "config.json").read_text())
    found = diff(wheel("0.5.12"), wheel("0.5.23"), words, facts=FACTS, model_config=config)
    assert found.upgrade.argv == words
    assert found.exit_status == 0, found.text()


@pytest.mark.parametrize("version", ["0.5.12", "0.5.14", "0.5.18", "0.5.19", "0.5.20"])
def test_the_shipped_arguments_parse_on_every_release_to_come(table, version):
    words = [*MODEL, *PP8, "--mem-fraction-static", "0.85", "--context-length", "131072", "--enable-metrics"]
    got = rewrite(words, table(version), table("0.5.23"))
    assert (list(got.argv), got.changed, got.stuck) == (words, (), ())


def test_codes_of_the_upgrade_are_in_the_catalogue():
    assert {"SGA601", "SGA602", "SGA603", "SGA604", "SGA605", "SGA606", "SGA607", "SGA609"} <= set(CODES)


def test_words_the_old_release_does_not_take_raise(table):
    with pytest.raises(ArgvError):
        rewrite([*MODEL, "--nope"], table("0.5.12"), table("0.5.23"))
