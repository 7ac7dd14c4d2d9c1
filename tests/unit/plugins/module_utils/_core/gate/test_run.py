# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The whole gate against a small paced server: figures that can be calculated, and every way to be fooled."""

from __future__ import annotations

import json
import threading
import time

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.clocks import ClockWatch
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError, Nvml
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.reasons import point_reasons
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate

from .fake_pynvml import FakePynvml
from .paced_server import Pace, serving
from .traces import bound_of

QUICK = {"input_tokens": 16, "output_tokens": 20, "min_seconds_per_point": 0.2, "max_seconds_per_point": 4, "stall_timeout_s": 1}
# For a point that no look can end: its figure is not asked.
BRIEF = {"max_seconds_per_point": 1.5}
LOW = {"min_output_tokens_per_s": 1}
SECRET = "sk-very-secret"
GRAPHS = 'sglang:cuda_graph_passes_total{{pp_rank="{rank}",mode="decode_{kind}"}} {value}\n'


def no_cards():
    raise NoNvmlError("no NVML in this test")


def gate(pace: Pace, folder, points=({"concurrency": 2, "min_output_tokens_per_s": 1},), *, options=None, **extra):
    with serving(pace) as url:
        plan = GatePlan.from_dict({**QUICK, "points": list(points), **(options or {})})
        return run_gate(url, plan, folder, open_nvml=no_cards, **extra)


def said(result, text):
    return any(text in reason for reason in result["reasons"])


def test_figure_is_the_servers_own_pace(tmp_path):
    """TTFT counts, warm-up and tail do not: 40 tokens per 0.1 + 39 * 0.01 s and stream."""
    pace = Pace(ttft_s=0.1, itl_s=0.01)
    options = {"output_tokens": 40, "min_seconds_per_point": 2}
    points = [{"concurrency": 1, **LOW}, {"concurrency": 4, "min_output_tokens_per_s": 250}]
    result = gate(pace, tmp_path, points, options=options)
    expected = 40 / (0.1 + 39 * 0.01)
    assert result["verdict"] == "pass"
    for point in result["points"]:
        # A machine that others use makes it slower, nothing makes it faster.
        assert 0.9 < point["output_tokens_per_s"] / (point["concurrency"] * expected) < 1.01
        assert point["output_tokens"]["mean"] == 40
        assert point["input_tokens"]["mean"] == 16
        assert 0.9 < point["in_flight"]["mean"] / point["concurrency"] < 1.01
    assert pace.most_in_flight <= 5
    assert result["gpus"] == []
    assert any("no NVML in this test" in note for note in result["notes"])
    assert {path.name for path in tmp_path.iterdir()} >= {
        "result.json",
        "samples.jsonl",
        "progress.jsonl",
        "report.html",
        "report.md",
        "junit.xml",
    }
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert any("tok/s   in window" in line["text"] and "left" in line["text"] for line in lines)


def test_slow_first_requests_are_warm_up_and_scale_with_concurrency_r79(tmp_path):
    """R79: the first two requests of each stream are slow here, and in no figure."""
    pace = Pace(ttft_s=0.01, itl_s=0.002, slow_warm_up=8)
    result = gate(pace, tmp_path, [{"concurrency": streams, **LOW} for streams in (4, 1, 7)])
    assert [point["requests"]["warm_up"] for point in result["points"]] == [8, 2, 14]
    assert result["points"][0]["e2e_ms"]["p50"] < 150
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    for index, point in enumerate(result["points"]):
        ours = [sample for sample in samples if sample.get("point") == index and "phase" in sample]
        warm = [sample for sample in ours if sample["phase"] == "warmup"]
        assert len(warm) == 2 * point["concurrency"]
        assert all(sample["end_ns"] <= point["window_ns"][0] for sample in warm)
        assert sum(sample["phase"] == "window" for sample in ours) == point["requests"]["ok"] + point["requests"]["failed"]


def test_prompts_are_fresh_within_a_run_and_between_runs_r77(tmp_path):
    pace = Pace(ttft_s=0.005, itl_s=0.001)
    for name in ("a", "b"):
        gate(pace, tmp_path / name)
    prompts = [tuple(body["prompt"]) for body in pace.seen if isinstance(body.get("prompt"), list)]
    assert len(prompts) > 10
    assert len(set(prompts)) == len(prompts)
    assert len({prompt[:2] for prompt in prompts}) > 0.9 * len(prompts)


def test_every_way_a_request_can_end_is_counted_and_shown(tmp_path):
    """The probe and two rounds of warm-up come first: the window opens with load request number 5."""
    pace = Pace(ttft_s=0.005, itl_s=0.002, odd={6: "short", 7: "long", 8: "uncounted", 9: "error", 11: "hang"})
    result = gate(pace, tmp_path, options={"stall_timeout_s": 0.8, "min_seconds_per_point": 1.2})
    counts = result["points"][0]["requests"]
    expected = {"failed": 2, "timed_out": 1, "short": 1, "long": 1, "uncounted": 1, "warm_up": 4}
    assert {name: counts[name] for name in expected} == expected
    assert counts["planned"] == counts["ok"] + counts["failed"] + counts["cancelled"]
    assert result["verdict"] == "fail"
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert sum(sample.get("phase") == "drain" for sample in samples) == counts["cancelled"]
    assert result["points"][0]["goodput_ratio"] == pytest.approx(counts["ok"] / (counts["ok"] + 2), abs=1e-4)
    for name in ("report.html", "report.md"):
        page = (tmp_path / name).read_text()
        for words in ("2 failed", "1 of them timed out", "1 too short", "1 too long", "1 without usage"):
            assert words in page, (name, words)


def test_a_percentile_of_too_few_requests_is_absent(tmp_path):
    result = gate(Pace(ttft_s=0.1, itl_s=0.005), tmp_path, [{"concurrency": 1, "max_ttft_p99_ms": 1000}], options=BRIEF)
    point = result["points"][0]
    assert 2 <= point["ttft_ms"]["n"] < 100
    assert point["ttft_ms"]["p50"] == pytest.approx(100, rel=0.3)
    assert point["ttft_ms"]["p99"] is None
    assert result["verdict"] == "inconclusive"
    assert said(result, "p99 needs 100 samples")


@pytest.mark.parametrize(
    ("pace", "verdict", "reason"),
    [
        pytest.param(Pace(cached_tokens=4), "inconclusive", "prefix cache", id="R77 cached prompts"),
        pytest.param(Pace(text=""), "fail", "no text was delivered", id="tokens in usage but no text"),
        pytest.param(Pace(text="!"), "fail", "garbage", id="R55 only exclamation marks"),
        pytest.param(Pace(max_tokens_ignored=True), "fail", "sanity probe: max_tokens", id="R15 max_tokens ignored"),
        pytest.param(
            Pace(limit_ignored_in_chat=True), "fail", "sanity probe: max_tokens 8", id="R15 in answers to questions alone"
        ),
        pytest.param(Pace(endless_load=True, running_usage=False), "fail", "max_tokens 8 was ignored", id="R15 under load alone"),
        pytest.param(Pace(usage_factor=2, running_usage=False), "fail", "max_tokens", id="usage counts double"),
        pytest.param(Pace(usage_factor=0.5, running_usage=False), "inconclusive", "chunks", id="usage counts half"),
        pytest.param(Pace(chunk_tokens=5, running_usage=False), "inconclusive", "cannot be confirmed", id="count not confirmed"),
        pytest.param(Pace(input_offset=4), "inconclusive", "prompts held", id="other prompt length than planned"),
        pytest.param(Pace(fail_after=6), "fail", "HTTP 500", id="errors under load"),
        pytest.param(Pace(hang_after=3), "fail", "stopped generating", id="hang in the middle"),
        pytest.param(Pace(hang_after=0), "fail", "accepts but does not generate", id="R59 green but no tokens"),
    ],
)
def test_a_figure_that_cannot_be_trusted_never_passes(pace, verdict, reason, tmp_path):
    pace.ttft_s, pace.itl_s = 0.05, 0.002
    started = time.monotonic()
    result = gate(pace, tmp_path)
    assert result["verdict"] == verdict
    assert said(result, reason), result["reasons"]
    assert time.monotonic() - started < 20


def test_server_that_never_answers_at_all_ends_at_its_deadline_r59(tmp_path):
    result = gate(Pace(ttft_s=3600), tmp_path)
    assert result["verdict"] == "fail"
    assert said(result, "accepts but does not generate: no token within 1 s")


@pytest.mark.parametrize(
    ("factor", "verdict", "reason"),
    [(1.0, "pass", None), (0.9, "inconclusive", "the engine itself counted"), (9.0, "inconclusive", "other clients load")],
)
def test_the_engines_counters_are_asked_too(factor, verdict, reason, tmp_path):
    result = gate(Pace(ttft_s=0.02, itl_s=0.002, counter_factor=factor), tmp_path)
    assert result["verdict"] == verdict
    assert reason is None or said(result, reason)


def test_a_clock_that_is_set_during_the_run_leaves_no_verdict(tmp_path):
    steps = iter([0, 0, 3600])
    offset = [0]

    def wall():
        offset[0] = next(steps, offset[0])
        return time.time_ns() + offset[0] * 10**9

    result = gate(Pace(ttft_s=0.02, itl_s=0.002), tmp_path, watch=ClockWatch(wall_ns=wall))
    assert result["verdict"] == "inconclusive"
    assert said(result, "the wall clock was set by +3600.0 s")


def test_a_reply_that_runs_on_is_not_waited_for_r15(tmp_path):
    """R15: replies ran past 60,000 tokens."""
    pace, started = Pace(ttft_s=0.01, itl_s=0.001, endless=True), time.monotonic()
    options = {"sanity": {"prompt": "?", "max_tokens": 8}, "max_seconds_per_point": 60, "stall_timeout_s": 30}
    result = gate(pace, tmp_path, options=options)
    assert result["verdict"] == "fail"
    assert said(result, "max_tokens 8 was ignored") and said(result, "when we hung up")
    assert time.monotonic() - started < 15


def test_reasoning_alone_is_an_answer(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002, reasoning=True), tmp_path, options={"sanity": {"prompt": "?", "expect": "QQ"}})
    assert result["verdict"] == "pass"


def test_expected_word_must_come(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002), tmp_path, options={"sanity": {"prompt": "2+2?", "expect": "four"}})
    assert result["verdict"] == "fail"
    assert said(result, "'four' is not in the answer")


def test_server_without_token_ids_gets_calibrated_words(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002, token_ids=False, chat=False), tmp_path)
    assert result["verdict"] == "pass"
    assert result["points"][0]["input_tokens"]["mean"] == 16
    assert any("words" in note for note in result["notes"])


def test_several_tokens_per_chunk_are_counted_by_the_running_usage(tmp_path):
    pace = Pace(ttft_s=0.02, itl_s=0.005, chunk_tokens=4, server_info={"stream_interval": 4, "version": "0.5.23"})
    result = gate(pace, tmp_path)
    assert result["verdict"] == "pass"
    assert result["points"][0]["output_tokens_per_s"] == pytest.approx(2 * 20 / (0.02 + 4 * 0.02), rel=0.1)


def test_eager_passes_below_the_requirement_fail_r104(tmp_path):
    pace = Pace(ttft_s=0.05, itl_s=0.002, metrics=GRAPHS.format(rank=0, kind="none", value=0))

    def count(line):
        if line.get("state") == "window":
            pace.metrics = "".join(
                GRAPHS.format(rank=rank, kind=kind, value=50) for rank in (0, 1) for kind in ("none", "cuda_graph")
            )

    options = {"require": {"decode_graph_pass_ratio": 0.99}, "min_seconds_per_point": 2.5}
    result = gate(pace, tmp_path, options=options, on_progress=count)
    assert result["verdict"] == "fail"
    assert said(result, "decode_graph_pass_ratio: required 0.99, measured 0.5")
    assert result["engine"]["graph_passes"]["decode"] == {"graph": 50, "eager": 50}


def test_what_the_plan_requires_of_every_point_is_said_once(tmp_path):
    pace = Pace(ttft_s=0.05, itl_s=0.002)
    options = {"require": {"decode_graph_pass_ratio": 0.99}}
    result = gate(pace, tmp_path, [{"concurrency": 1, **LOW}, {"concurrency": 2, **LOW}], options=options)
    told = [reason for reason in result["reasons"] if "decode_graph_pass_ratio" in reason]
    assert told == ["decode_graph_pass_ratio: required 0.99, but the engine counted no decode pass (--enable-metrics)"]
    assert all(any("decode_graph_pass_ratio" in reason for reason in point["reasons"]) for point in result["points"])


def test_a_requirement_missed_at_one_point_names_the_point():
    passes = ({"graph": 90, "eager": 10}, {"graph": 100, "eager": 0})
    points = [
        {
            "concurrency": concurrency,
            "verdict": "fail" if found["eager"] else "observed",
            "reasons": ["decode_graph_pass_ratio: required 0.99, measured 0.9 (n = 100 passes): fail"] if found["eager"] else [],
            "engine": {"graph_passes": {"decode": found, "prefill": {"graph": 0, "eager": 0}}},
        }
        for concurrency, found in zip((1, 8), passes, strict=True)
    ]
    (reason,) = point_reasons(points, {"decode_graph_pass_ratio": 0.99})
    assert reason.startswith("concurrency 1: decode_graph_pass_ratio")


def test_what_casts_doubt_on_every_point_alike_is_said_once_with_all_their_loads():
    loads = [{"concurrency": 1}, {"concurrency": 16}, {"rate": 2.0}]
    points = [
        {**load, "verdict": "inconclusive", "reasons": ["card 0 is shared", f"only {number}"], "engine": {"graph_passes": None}}
        for number, load in enumerate(loads)
    ]
    assert point_reasons(points[:2], {}) == [
        "concurrency 1, 16: card 0 is shared",
        "concurrency 1: only 0",
        "concurrency 16: only 1",
    ]
    assert point_reasons(points, {})[0] == "concurrency 1, concurrency 16, rate 2/s: card 0 is shared"


def test_garbage_in_the_answer_to_a_plain_question_is_found_before_any_load_r55(tmp_path):
    pace = Pace(ttft_s=0.01, itl_s=0.001, text="!")
    result = gate(pace, tmp_path)
    assert said(result, "sanity probe: the answer is garbage")
    assert not any(body.get("ignore_eos") for body in pace.seen)


def test_a_requirement_the_engine_does_not_count_is_inconclusive(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002), tmp_path, options={"require": {"decode_graph_pass_ratio": 0.99}})
    assert result["verdict"] == "inconclusive"
    assert said(result, "counted no decode pass")


class KnownBound(GateContext):
    """A context with a bound that the paced server beats."""

    def filled_from(self, resolved):
        return self

    def bound(self, **_):
        return bound_of(5.0)


def test_faster_than_the_bound_is_not_believed(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002), tmp_path, context=KnownBound())
    assert result["verdict"] == "inconclusive"
    assert said(result, "above the bound of 5")


def test_a_limit_above_the_bound_is_refused_before_any_load(tmp_path):
    pace = Pace(ttft_s=0.05, itl_s=0.002)
    with pytest.raises(InferopsError, match="cannot be reached: the bound is 5"):
        gate(pace, tmp_path, [{"concurrency": 1, "min_output_tokens_per_s": 6}], context=KnownBound())
    assert pace.seen == []


def test_a_plan_without_limits_is_held_to_the_promoted_release_or_to_the_bound(tmp_path):
    def judged(name, **known):
        folder, context = tmp_path / name, GateContext(**known)
        result = gate(Pace(ttft_s=0.05, itl_s=0.002), folder, [{"concurrency": 2}], context=context, options=BRIEF)
        (limit,) = result["points"][0]["limits"]
        return result["verdict"], limit["metric"], any("names no limit" in note for note in result["notes"])

    old = {"points": [{"concurrency": 2, "output_tokens_per_s": 50.0, "ci": [49.0, 51.0]}]}
    faster = {"points": [{"concurrency": 2, "output_tokens_per_s": 5e6, "ci": [4.9e6, 5.1e6]}]}
    assert judged("a", promoted_result=old) == ("pass", "min_ratio_to_promoted", True)
    assert judged("b", promoted_result=faster) == ("fail", "min_ratio_to_promoted", True)
    assert judged("c") == ("inconclusive", "min_roofline_ratio", True)


def test_an_observed_plan_is_one_that_says_so(tmp_path):
    result = gate(Pace(ttft_s=0.05, itl_s=0.002), tmp_path, [{"concurrency": 2}], options={**BRIEF, "default_limits": "none"})
    assert (result["verdict"], result["points"][0]["verdict"]) == ("pass", "observed")


def test_interrupted_run_is_inconclusive_and_keeps_what_it_has(tmp_path):
    stop = threading.Event()
    threading.Timer(2.5, stop.set).start()
    points = [{"concurrency": 1}, {"concurrency": 2}]
    options = {"min_seconds_per_point": 60, "max_seconds_per_point": 60}
    result = gate(Pace(ttft_s=0.01, itl_s=0.002), tmp_path, points, options=options, should_stop=stop.is_set)
    assert result["verdict"] == "inconclusive"
    assert said(result, "interrupted")
    assert said(result, "1 of 2 points were not measured")
    assert result["points"][0]["ended_by"] == "interrupted"
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert (tmp_path / "report.html").exists()


def test_secrets_stay_out_of_every_file(tmp_path):
    info = {"version": "0.5.23", "api_key": SECRET, "launch_command": f"--api-key {SECRET}", "pp_size": 8}
    result = gate(Pace(ttft_s=0.05, itl_s=0.002, api_key=SECRET, server_info=info), tmp_path, api_key=SECRET)
    assert result["engine"] == {"version": "0.5.23", "simulated": False, "resolved": {"pp_size": 8}, "graph_passes": None}
    for path in tmp_path.iterdir():
        assert SECRET not in path.read_text(), path


@pytest.mark.parametrize(
    ("pace", "options", "what"),
    [
        (Pace(api_key="x"), {}, "API key"),
        (Pace(), {"model": "other"}, "does not serve other"),
    ],
)
def test_what_cannot_be_judged_is_an_error_not_a_verdict(pace, options, what, tmp_path):
    with pytest.raises(InferopsError, match=what):
        gate(pace, tmp_path, options=options)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1:9", "http://u:p@127.0.0.1:9"])
def test_unreachable_or_wrong_address(url, tmp_path):
    with pytest.raises(InferopsError) as caught:
        run_gate(url, GatePlan.from_dict({"points": [{"concurrency": 1}]}), tmp_path, open_nvml=no_cards)
    assert "p@" not in str(caught.value)


def test_the_folder_of_a_run_that_could_not_begin_says_so(tmp_path):
    with pytest.raises(InferopsError, match="cannot be reached"):
        run_gate("http://127.0.0.1:9", GatePlan.from_dict({"points": [{"concurrency": 1}]}), tmp_path, open_nvml=no_cards)
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["verdict"], result["finished"]) == ("inconclusive", True)
    assert "the server cannot be reached" in result["reasons"][0]
    assert (tmp_path / "report.html").exists()


def test_a_card_that_falls_off_the_bus_ends_the_gate_at_once_and_is_a_failure_r44(tmp_path):
    """Another try would meet the same card, so it is no inconclusive run, which would be tried again."""
    library = FakePynvml()
    threading.Timer(1.0, lambda: library.xids.extend([(1, 154), *[(1, 79)] * 500])).start()
    options = {"min_seconds_per_point": 60, "max_seconds_per_point": 60}
    with serving(Pace()) as url:
        plan = GatePlan.from_dict({**QUICK, **options, "points": [{"concurrency": 2, "min_output_tokens_per_s": 1}]})
        began = time.monotonic()
        result = run_gate(url, plan, tmp_path, open_nvml=lambda: Nvml(library))
    assert time.monotonic() - began < 20
    assert result["verdict"] == "fail"
    assert said(result, "host unhealthy: Xid 79 on card 1 (GPU-1): the card has fallen off the bus")
    assert said(result, "host unhealthy: Xid 154")
    assert (tmp_path / "result.json").stat().st_size < 30_000
    assert 154 in result["gpus"][1]["xid"] and len(result["gpus"][1]["xid"]) <= 16


def test_cards_of_the_clients_machine_are_not_those_of_a_server_elsewhere(tmp_path):
    library, context = FakePynvml(), GateContext(server_here=False)
    library.xids.extend([(1, 79)] * 5)
    with serving(Pace()) as url:
        plan = GatePlan.from_dict({**QUICK, "points": [{"concurrency": 2, "min_output_tokens_per_s": 1}]})
        result = run_gate(url, plan, tmp_path, open_nvml=lambda: Nvml(library), context=context)
    assert result["verdict"] == "pass" and result["gpus"] == []
    assert any("cards were not observed" in note and "another machine" in note for note in result["notes"])
    assert any("processors and network of the server were not observed" in note for note in result["notes"])


def test_readings_beside_the_load_come_five_times_a_second_and_name_only_what_was_read(tmp_path):
    library = FakePynvml()
    pace = Pace(metrics='sglang:num_running_reqs{pp_rank="0"} 2\nsglang:token_usage{pp_rank="0"} 0.25\nother 1\n')
    with serving(pace) as url:
        plan = GatePlan.from_dict({**QUICK, "min_seconds_per_point": 2, "points": [{"concurrency": 2}]})
        result = run_gate(url, plan, tmp_path, open_nvml=lambda: Nvml(library))
    lines = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    low, high = result["points"][0]["window_ns"]
    inside = [line for line in lines if low <= line.get("ns", -1) <= high]
    seconds = (high - low) / 1e9
    # Another process may hold this one up for a moment: 4 of 5.
    assert sum("gpus" in line for line in inside) >= 4 * seconds
    assert sum("engine" in line for line in inside) >= 3 * seconds
    card, read = next(line for line in inside if "gpus" in line)["gpus"][0], next(line for line in inside if "engine" in line)
    assert (card["power_w"], card["utilization_ratio"]) == (85, 0)
    assert read["engine"] == {"running_reqs": 2, "kv_used_ratio": 0.25}
    assert all(0 <= line["host"]["cpu_ratio"] <= 1 for line in inside if "host" in line)
