"""Advice the source supports: switches, pipeline slots, the kind of card; as many silent cases as speaking ones."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from known_hosts import RTX_PRO_6000 as RTX

pytestmark = pytest.mark.wheel
H200 = {"platform": "cuda", "gpu_name": "NVIDIA H200", "gpu_count": 8, "sm": 90, "gpu_memory_mib": 143771}
M = ["--model-path", "m"]
PP8 = [*M, "--pp-size", "8", "--pp-async-batch-depth", "8"]


@pytest.fixture(scope="module")
def run(wheel, fixtures):
    trees = {}

    def call(version, argv, model="llama", facts=RTX, env=None):
        if version not in trees:
            trees[version] = open_source(wheel(version))
        config = json.loads((fixtures / "oracle" / "models" / model / "config.json").read_text())
        return check(argv, source_root=trees[version], facts=facts, model_config=config, env=env or {})

    return call


def found(report, code):
    return [finding for finding in report.findings if finding.code == code]


def pairs():
    from pathlib import Path

    path = Path(__file__).resolve().parents[6] / "tests" / "fixtures" / "oracle" / "switch_pairs.json"
    return json.loads(path.read_text())


@pytest.mark.parametrize("pair", pairs(), ids=lambda one: f"{one['sglang_version']} {' '.join(one['with_flag']['argv'][1:])}")
def test_r7_every_executed_pair_is_told_as_it_was(run, pair):
    """Who turned the graphs off, as SGLang itself did when it was executed (R7)."""
    side = pair["with_flag"]
    report = run(pair["sglang_version"], side["argv"], side["model_config"])
    assert report.outcome in ("ok", "unknown"), report.text()
    forced, kept = pair["forced_by_others"], pair["effective_with"] in ("full", "enabled")
    if pair["flag"] == "--disable-cuda-graph":
        if kept:
            assert (found(report, "SGA301"), len(found(report, "SGA306"))) == ([], 1)
        else:
            why = found(report, "SGA301")[0].why
            assert ("redundant" in why, "vestigial" in why) == (forced, not forced)
    else:
        assert (len(found(report, "SGA303")), len(found(report, "SGA304"))) == (int(forced), int(not forced))


CASES = [
    # version, words, code, speaks
    ("0.5.10", [*M, "--pp-size", "8", "--disable-overlap-schedule"], "SGA303", True),
    ("0.5.23", [*M, "--pp-size", "8", "--disable-overlap-schedule"], "SGA303", True),
    ("0.5.10", [*M, "--tp-size", "8", "--disable-overlap-schedule"], "SGA303", False),
    ("0.5.23", [*M, "--tp-size", "8", "--disable-overlap-schedule"], "SGA303", False),
    ("0.5.12", [*M, "--tp-size", "8", "--disable-radix-cache"], "SGA304", True),
    ("0.5.23", [*M, "--tp-size", "8", "--disable-radix-cache"], "SGA304", True),
    ("0.5.12", [*M, "--tp-size", "8"], "SGA304", False),
    ("0.5.23", [*M, "--tp-size", "8", "--disable-cuda-graph"], "SGA304", False),
    ("0.5.12", [*M, "--tp-size", "1", "--dp-size", "1"], "SGA305", True),
    ("0.5.23", [*M, "--pp-async-batch-depth", "0"], "SGA305", True),
    ("0.5.12", [*M, "--tp-size", "8"], "SGA305", False),
    ("0.5.23", [*M, "--pp-size", "8", "--pp-async-batch-depth", "4"], "SGA305", False),
    ("0.5.18", [*M, "--tp-size", "8", "--disable-cuda-graph", "--cuda-graph-backend-decode", "full"], "SGA306", True),
    ("0.5.23", [*M, "--disable-decode-cuda-graph", "--cuda-graph-config", '{"decode": {"backend": "full"}}'], "SGA306", True),
    ("0.5.18", [*M, "--tp-size", "8", "--disable-cuda-graph"], "SGA306", False),
    ("0.5.23", [*M, "--tp-size", "8", "--cuda-graph-backend-decode", "full"], "SGA306", False),
    ("0.5.10", [*M, "--pp-size", "8", "--pp-async-batch-depth", "-1"], "SGA311", True),
    ("0.5.23", [*M, "--pp-size", "2", "--tp-size", "4", "--pp-async-batch-depth=-2"], "SGA311", True),
    ("0.5.10", PP8, "SGA311", False),
    ("0.5.23", PP8, "SGA311", False),
    ("0.5.12", [*M, "--tp-size", "8", "--pp-async-batch-depth", "4"], "SGA312", True),
    ("0.5.23", [*M, "--tp-size", "8", "--pp-async-batch-depth", "4"], "SGA312", True),
    ("0.5.12", PP8, "SGA312", False),
    ("0.5.23", [*M, "--tp-size", "8"], "SGA312", False),
    ("0.5.12", [*PP8, "--max-running-requests", "64", "--pp-max-micro-batch-size", "32"], "SGA313", True),
    ("0.5.23", [*PP8, "--max-running-requests", "4"], "SGA313", True),
    ("0.5.12", [*PP8, "--max-running-requests", "64", "--pp-max-micro-batch-size", "8"], "SGA313", False),
    ("0.5.23", [*M, "--tp-size", "8", "--max-running-requests", "4"], "SGA313", False),
    ("0.5.23", [*PP8, "--max-running-requests", "64"], "SGA313", False),
    ("0.5.18", [*M, "--tp-size", "8", "--mem-fraction-static", "0.98"], "SGA322", True),
    ("0.5.23", [*PP8, "--mem-fraction-static", "0.99"], "SGA322", True),
    ("0.5.18", [*M, "--tp-size", "8", "--mem-fraction-static", "0.97"], "SGA322", False),
    ("0.5.23", PP8, "SGA322", False),
    ("0.4.6.post5", [*M, "--mem-fraction-static", "85"], "SGA323", True),
    ("0.5.12", [*M, "--mem-fraction-static", "0"], "SGA323", True),
    ("0.5.23", [*M, "--mem-fraction-static", "-0.5"], "SGA323", True),
    ("0.5.23", [*M, "--mem-fraction-static", "1.2", "--max-total-tokens", "4096"], "SGA323", False),
    ("0.5.23", [*M, "--chunked-prefill-size", "-1"], "SGA323", False),
]


@pytest.mark.parametrize(
    ("version", "argv", "code", "speaks"), CASES, ids=lambda one: " ".join(one) if isinstance(one, list) else None
)
def test_advice_speaks_where_it_should_and_only_there(run, version, argv, code, speaks):
    report = run(version, argv)
    assert len(found(report, code)) == int(speaks), report.text()
    assert all(finding.do and finding.why for finding in found(report, code))


def test_there_are_as_many_silent_cases_as_speaking_ones():
    speaking = sum(case[3] for case in CASES)
    assert abs(len(CASES) - 2 * speaking) <= 2


@pytest.mark.parametrize("version", ["0.5.10", "0.5.18", "0.5.23"])
def test_r31_back_ends_without_kernels_for_the_card(run, version):
    """Back ends that crash on SM120 are told, triton is accepted (R31)."""
    words = [*M, "--tp-size", "8", "--moe-runner-backend"]
    assert found(run(version, [*words, "deep_gemm"], "qwen3_moe"), "SGA320")
    assert not found(run(version, [*words, "triton"], "qwen3_moe"), "SGA320")
    assert not found(run(version, [*words, "deep_gemm"], "qwen3_moe", facts=H200), "SGA320")
    assert not found(run(version, [*words, "deep_gemm"], "qwen3_moe", facts={"gpu_count": 8}), "SGA320")


@pytest.mark.parametrize("version", ["0.5.10", "0.5.23"])
def test_r71_an_fp8_cache_with_the_int4_checkpoint_is_known_slow(run, version):
    """16 tokens/s with an FP8 cache on the INT4 checkpoint (R71)."""
    fp8 = [*PP8, "--kv-cache-dtype", "fp8_e4m3"]
    finding = found(run(version, fp8, "kimi_k25"), "SGA321")
    assert finding
    assert "16 tokens/s" in finding[0].why
    assert not found(run(version, PP8, "kimi_k25"), "SGA321")
    assert not found(run(version, fp8, "kimi_k25", facts=H200), "SGA321")
    assert not found(run(version, fp8, "llama"), "SGA321")


def test_r76_the_margin_is_said_in_numbers(run):
    """Boots at 0.97, dies in capture at 0.98 (R76)."""
    finding = found(run("0.5.23", [*PP8, "--mem-fraction-static", "0.98"]), "SGA322")[0]
    assert "leaves 1,958 MiB of 97,887 MiB" in finding.message
    assert "2,937 MiB" in finding.why
    assert not found(run("0.5.23", [*PP8, "--mem-fraction-static", "0.98"], facts={"sm": 120, "platform": "cuda"}), "SGA322")


L4 = {"platform": "cuda", "gpu_name": "NVIDIA L4", "gpu_count": 1, "sm": 89, "gpu_memory_mib": 23034}


@pytest.mark.parametrize("version", ["0.5.10", "0.5.18", "0.5.23"])
def test_a_share_of_memory_that_sglang_works_out_below_zero_is_refused(run, version):
    """SGLang accepts it while it resolves its arguments, and stops after loading; started on a processor, 0.5.23."""
    report = run(version, [*M, "--chunked-prefill-size", "-1"], facts=L4)
    finding = found(report, "SGA323")[0]
    assert (report.outcome, finding.level) == ("ok", "error")
    assert finding.message.startswith("SGLang works out a mem_fraction_static of -0.0")
    assert "depends on --chunked-prefill-size" in finding.why
    assert finding.source == report.changed["mem_fraction_static"]["source"]
    unknown = {key: value for key, value in L4.items() if key != "gpu_memory_mib"}
    assert not found(run(version, [*M, "--chunked-prefill-size", "-1"], facts=unknown), "SGA323")


PREFILL_OFF = [
    ("0.5.10", True),
    ("0.5.12", True),
    ("0.5.14", True),
    ("0.5.15", False),
    ("0.5.18", False),
    ("0.5.19", True),
    ("0.5.23", True),
]


@pytest.mark.parametrize(("version", "off"), PREFILL_OFF)
def test_r13_prefill_graphs_off_under_a_pipeline_are_an_override_said_per_release(run, version, off):
    """Silently off under a pipeline, in some releases only (R13)."""
    argv = [*M, "--pp-size", "4"]
    told = [f for f in found(run(version, argv), "SGA210") if "prefill.backend" in f.message or "piecewise" in f.message]
    assert bool(told) is off
    assert all(finding.level == "override" and finding.source for finding in told)


@pytest.mark.parametrize(("version", "by_pipeline"), [("0.5.15", False), ("0.5.19", True), ("0.5.23", True)])
def test_r13_the_opt_in_keeps_prefill_graphs_and_a_multimodal_model_loses_them_anyway(run, version, by_pipeline):
    """Who asks for them keeps them; up to 0.5.18 it is a multimodal model that loses them (0.5.15, server_args.py:3374) (R13)."""
    opted = run(version, [*M, "--pp-size", "4", "--cuda-graph-backend-prefill=breakable"])
    assert opted.effective["cuda_graph_config.prefill.backend"] == "breakable"
    seen = run(version, [*M, "--pp-size", "4"], "kimi_k25")
    assert seen.effective["cuda_graph_config.prefill.backend"] == "disabled"
    told = [one for one in found(seen, "SGA210") if "prefill.backend" in one.message]
    assert told and any("pp_size" in (one.why or "") for one in told) is by_pipeline, told


@pytest.mark.parametrize("version", ["0.5.10", "0.5.12", "0.5.18", "0.5.23"])
def test_r16_speculative_decoding_in_a_pipeline_is_refused_with_the_reason(run, version):
    """Speculative decoding on decode with a pipeline (R16)."""
    argv = [*M, "--pp-size", "8", "--speculative-algorithm", "EAGLE"]
    finding = found(run(version, argv), "SGA201")
    assert finding
    assert "pipeline" in finding[0].message.lower() or "pp" in finding[0].message.lower()


ONLY = ["--disaggregation-mode", "prefill"]


@pytest.mark.parametrize(
    ("version", "more", "env", "refused"),
    [
        ("0.5.12", ONLY, {}, True),
        ("0.5.12", [], {"SGLANG_ENABLE_PP_SPEC": "1"}, True),
        ("0.5.20", ONLY, {}, True),
        ("0.5.23", ONLY, {}, False),
        ("0.5.23", [], {"SGLANG_ENABLE_PP_SPEC": "1"}, False),
    ],
)
def test_r16_prefill_nodes_and_the_opt_in_are_let_pass_where_the_release_does(run, version, more, env, refused):
    """All is refused up to 0.5.20; later a prefill node passes, and who opts in by environment (R16)."""
    report = run(version, [*M, "--pp-size", "8", "--speculative-algorithm", "EAGLE", *more], env=env)
    said = [one.message.lower() for one in found(report, "SGA201")]
    assert any("pipeline" in one or "pp +" in one for one in said) is refused, report.text()
