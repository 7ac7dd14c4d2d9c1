"""The fake server from outside: its life, its arguments, its answers, and each way in which it can misbehave."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
from measure import measure

COMPLETION = {"prompt": [1, 2, 3], "max_tokens": 6, "ignore_eos": True}
PP8 = ("--pp-size", "8", "--served-model-name", "kimi-k2.6", "--enable-metrics")


def test_the_port_is_closed_while_loading_then_ready(start):
    running = start(*PP8, timescale=1, ready=False, start_seconds=1.0)
    seen = []
    while (status := running.get("/health")[0]) != 200:
        if not seen or seen[-1] != status:
            seen.append(status)
        time.sleep(0.02)
    assert seen[0] == 0
    assert set(seen) <= {0, 503}
    assert "SIMULATED" in running.log.splitlines()[0]
    assert "Loading safetensors checkpoint shards" in running.log
    assert "Capture target decode CUDA graph begin" in running.log


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--no-such-flag",), "unrecognized arguments: --no-such-flag"),
        (("--pp", "8"), "ambiguous option: --pp could match --pp-size"),  # R101
        (("--reasoning_parser", "kimi_k2"), "unrecognized arguments: --reasoning_parser"),  # R2
        (("--attention-backend", "abacus"), "invalid choice: 'abacus'"),
        (("--pp-size",), "expected one argument"),
    ],
)
def test_arguments_are_refused_as_sglang_refuses_them(start, argv, words):
    running = start(*argv, ready=False)
    assert running.process.wait(20) == 2
    assert words in running.log


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--disable-cuda-graph",), {"decode": "disabled", "depth": 0}),  # R7
        (("--pp-async-batch-depth", "8", "--attention-backend", "triton"), {"decode": "full", "depth": 8}),
        (("--disable-cuda-graph", "--cuda-graph-backend-decode", "full"), {"decode": "full", "depth": 0}),
    ],
)
def test_resolved_values_come_from_the_recording(start, argv, expected):
    info = start(*PP8, *argv).json("/server_info")
    assert info["cuda_graph_config"]["decode"]["backend"] == expected["decode"]
    assert info["pp_async_batch_depth"] == expected["depth"]
    assert info["attention_backend"] == "triton"
    assert info["disable_overlap_schedule"] is True
    assert info["version"] == "0.5.23"
    assert info["simulated"] is True
    assert info["cuda_graph_config"]["prefill"]["backend"] == "disabled"


def test_a_missing_model_folder_ends_the_start(start, tmp_path):
    running = start("--model-path", str(tmp_path / "nowhere"), ready=False)
    assert running.process.wait(20) == 1
    assert "nowhere" in running.log


def test_the_key_from_a_config_file_is_asked_for_and_shown_as_sglang_shows_it(start, tmp_path):
    config = tmp_path / "keys.yaml"
    config.write_text("# secret\napi-key: 'sekret'\n")
    running = start(*PP8, "--config", str(config))
    assert [running.get(p)[0] for p in ("/health", "/ready", "/metrics")] == [200, 200, 200]
    assert [running.get(p)[0] for p in ("/v1/models", "/server_info")] == [401, 401]
    assert running.get("/v1/completions", COMPLETION)[0] == 401
    assert running.get("/v1/completions", COMPLETION, key="sekret")[0] == 200
    assert "sekret" in running.json("/server_info", key="sekret")["launch_command"]


def test_sigterm_drains_and_still_takes_requests(start):
    running = start(*PP8, timescale=5)
    long_ended = []
    caller = threading.Thread(target=lambda: long_ended.append(running.json("/v1/completions", COMPLETION | {"max_tokens": 400})))
    caller.start()
    time.sleep(0.5)
    running.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert running.get("/health")[0] == running.get("/ready")[0] == 503
    assert running.get("/v1/completions", COMPLETION)[0] == 200
    caller.join(20)
    assert long_ended[0]["usage"]["completion_tokens"] == 400
    assert running.process.wait(20) == 0


def test_sigterm_while_loading_ends_at_once(start):
    running = start(*PP8, ready=False, never_ready="loading")
    while "Load weight begin" not in running.log:
        time.sleep(0.05)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(5) == -signal.SIGTERM


def test_a_taken_port_is_noticed_after_loading_and_kills_the_process(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running = start(*PP8, port=taken.getsockname()[1], ready=False)
        assert running.process.wait(20) == -signal.SIGKILL
    assert "address already in use" in running.log


def test_counts_and_cached_tokens_follow_the_cache_report(start):
    quiet, telling = start(*PP8, cached_ratio=0.5), start(*PP8, "--enable-cache-report", cached_ratio=0.5)
    body = COMPLETION | {"prompt": list(range(100))}
    assert quiet.json("/v1/completions", body)["usage"]["prompt_tokens_details"] is None
    assert telling.json("/v1/completions", body)["usage"] == {
        "prompt_tokens": 100, "total_tokens": 106, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 50},
        "reasoning_tokens": 0, "completion_tokens_details": None,
    }  # fmt: skip
    native = quiet.json(
        "/generate", {"input_ids": list(range(100)), "sampling_params": {"max_new_tokens": 2, "ignore_eos": True}}
    )
    assert native["meta_info"]["cached_tokens"] == 50  # R77


def test_a_sanity_question_is_answered(start):
    running = start(*PP8, "--reasoning-parser", "kimi_k2", answers={"colour of the sky": "blue"})
    for question, answer in (("What is 17 + 25?", "42"), ("Capital of France?", "Paris"), ("The colour of the sky?", "blue")):
        message = running.json("/v1/chat/completions", {"messages": [{"role": "user", "content": question}]})["choices"][0][
            "message"
        ]
        assert answer in message["content"]
        assert message["reasoning_content"]


def passes(running) -> dict[str, float]:
    found = {}
    for line in running.get("/metrics")[1].decode().splitlines():
        if line.startswith("sglang:cuda_graph_passes_total") and 'pp_rank="0"' in line:
            found[line.split('mode="')[1].split('"')[0]] = float(line.split()[-1])
    return found


@pytest.mark.parametrize(
    ("argv", "used", "unused"),
    [((), "decode_cuda_graph", "decode_none"), (("--disable-cuda-graph",), "decode_none", "decode_cuda_graph")],
)
def test_the_pass_counters_tell_graphs_from_eager(start, argv, used, unused):
    running = start(*PP8, *argv)
    before = passes(running)
    running.json("/v1/completions", COMPLETION | {"max_tokens": 50})
    after = passes(running)
    assert after[used] - before[used] == 49
    assert after[unused] == before[unused]


def test_the_figures_over_http(start):
    """Ten times as fast; the independent client counts tokens on the wire."""
    slow = start(*PP8, "--disable-cuda-graph", timescale=4)
    got = asyncio.run(measure(slow.url, 8, input_tokens=512, output=128, rounds=3))
    assert got["output_tokens_per_s"] / 4 == pytest.approx(95.6, rel=0.03)
    assert got["usage_tokens"] == got["events"] == 8 * 3 * 128
    text = (slow.folder / "nvml.state").read_text()
    assert "gpu 7 power_mw" in text


# ---------------------------------------------------------------------------------------------------- misbehaviour
def test_never_ready(start):
    loading = start(*PP8, ready=False, never_ready="loading")
    warming = start(*PP8, ready=False, never_ready="warmup")
    deadline = time.monotonic() + 20
    while warming.get("/health")[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    assert loading.get("/health")[0] == 0
    assert warming.get("/health")[0] == 503


def test_green_without_tokens(start):
    """R59, R65: health is green, nothing is generated, the model may not even be listed."""
    running = start(*PP8, green_without_tokens=True, models_empty=True)
    assert running.get("/health")[0] == 200
    assert running.json("/v1/models")["data"] == []
    with pytest.raises(TimeoutError):
        running.get("/v1/completions", COMPLETION, timeout=1.5)


def test_garbage_and_wrong_counts_and_ignored_limits(start):
    running = start(*PP8)
    running.control(garbage=True, usage_factor=1.5)  # R55
    answer = running.json("/v1/completions", COMPLETION)
    assert answer["choices"][0]["text"] == "!!!!!!"
    assert answer["usage"]["completion_tokens"] == 9
    running.control(ignore_max_tokens=True)  # R15
    assert running.json("/v1/completions", COMPLETION)["usage"]["completion_tokens"] == 24
    running.control()
    assert running.json("/v1/completions", COMPLETION)["usage"]["completion_tokens"] == 6


def test_a_lost_flag_and_a_lying_report(start):
    """R52: what was asked never reaches the engine."""
    running = start(*PP8, "--pp-async-batch-depth", "8", drop_fields=["pp_async_batch_depth"])
    info = running.json("/server_info")
    assert info["pp_async_batch_depth"] == 0
    assert "--pp-async-batch-depth 8" in info["launch_command"]
    running.control(report_fields={"cuda_graph_config.decode.backend": "disabled"})
    assert running.json("/server_info")["cuda_graph_config"]["decode"]["backend"] == "disabled"


def test_hang_in_mid_stream(start):
    running = start(*PP8, hang_after_tokens=3)
    with pytest.raises(TimeoutError):
        running.get("/v1/completions", COMPLETION | {"max_tokens": 50}, timeout=1.5)
    assert running.get("/health")[0] == 200


def test_failures_and_crashes(start):
    failing = start(*PP8, fail_every=2)
    assert [failing.get("/v1/completions", COMPLETION)[0] for _ in range(4)] == [200, 500, 200, 500]
    crashing = start(*PP8, crash_after_requests=1)
    assert crashing.get("/v1/completions", COMPLETION)[0] == 200
    crashing.get("/v1/completions", COMPLETION)
    assert crashing.process.wait(10) == -signal.SIGKILL
    assert "SIGQUIT received" in crashing.log


@pytest.mark.parametrize(
    ("control", "words"),
    [({"crash_at_start": True}, "simulated crash"), ({"out_of_memory": "init"}, "increase --mem-fraction-static")],
)
def test_dies_while_loading(start, control, words):
    running = start(*PP8, ready=False, **control)
    assert running.process.wait(20) == -signal.SIGKILL
    assert words in running.log


def test_throttling_slows_and_shows(start):
    running = start(*PP8, timescale=10)

    def seconds() -> float:
        began = time.monotonic()
        running.json("/v1/completions", COMPLETION | {"max_tokens": 100})
        return time.monotonic() - began

    usual = seconds()
    running.control(throttle={"factor": 3.0, "reasons": ["sw_thermal"]})
    time.sleep(1.2)
    assert seconds() > 2 * usual
    assert f"gpu 0 throttle {0x20}" in (running.folder / "nvml.state").read_text()


def test_an_unknown_control_is_an_error(start):
    running = start(*PP8, ready=False, slow_start=True)
    assert running.process.wait(20) == 1
    assert "unknown control slow_start" in running.log


def test_a_broken_control_file_later_changes_nothing(start):
    running = start(*PP8, garbage=True)
    (running.folder / "control.json").write_text("{")
    assert running.json("/v1/completions", COMPLETION)["choices"][0]["text"] == "!!!!!!"
    assert "is not understood" in running.log


def test_a_client_that_leaves_frees_its_place(start):
    running = start(*PP8, timescale=1)
    body = json.dumps(COMPLETION | {"max_tokens": 5000, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", running.port)) as caller:
        caller.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        caller.recv(100)
        assert running_requests(running) == 1
    time.sleep(1)
    assert running_requests(running) == 0


def running_requests(running) -> float:
    lines = running.get("/metrics")[1].decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("sglang:num_running_reqs{"))
