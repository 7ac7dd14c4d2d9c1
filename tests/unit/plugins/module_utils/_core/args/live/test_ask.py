"""What the other process answers: each change with file:line, refusals, and every way of giving no answer."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live import ask, lines, probe, recorder
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Interpreter

ARGS = "srt/server_args.py"


def where(answer, field):
    return [write["source"] for write in answer.writes.get(field, ())]


def test_what_is_written_on_the_record_is_recorded_with_file_and_line(release):
    one = release("setattr")
    answer = one.ask("--pp-size", "2", "--attention-backend", "flashmla", "--disable-cuda-graph")
    assert (answer.outcome, answer.version) == ("ok", "9.0.1")
    assert where(answer, "disable_overlap_schedule") == [one.line(ARGS, "set: disable_overlap_schedule")]
    assert where(answer, "tokenizer_path") == [one.line(ARGS, "set: tokenizer_path")]
    assert where(answer, "page_size") == [one.line(ARGS, f"set: page_size, {which}") for which in ("first", "last")]
    assert [write["to"] for write in answer.writes["page_size"]] == [1, 64]
    assert where(answer, "cuda_graph_config.decode.backend") == [one.line(ARGS, "set: decode.backend, before it is placed")]
    assert where(answer, "cuda_graph_config.prefill.backend") == [one.line(ARGS, "set: prefill.backend, in place")]
    assert answer.asked["cuda_graph_config.decode.backend"] == "full"
    assert answer.effective["cuda_graph_config.decode.backend"] == "disabled"
    assert answer.effective["cuda_graph_config.prefill.backend"] == "disabled"


def test_what_is_declared_beside_the_record_is_recorded_with_file_and_line(release):
    one = release("declare")
    answer = one.ask("--pp-size", "2", "--disable-cuda-graph")
    assert answer.outcome == "ok"
    assert where(answer, "disable_overlap_schedule") == [one.line("srt/arg_groups/hooks.py", "set: disable_overlap_schedule")]
    assert where(answer, "page_size") == [one.line("srt/arg_groups/overrides.py", "set: page_size")]
    assert where(answer, "cuda_graph_config.decode.backend") == [one.line("srt/arg_groups/hooks.py", "set: decode")]
    assert answer.effective["disable_overlap_schedule"] is True
    assert answer.asked["disable_overlap_schedule"] is False
    assert answer.effective["attention_backend"] == "flashinfer"


def test_secrets_and_what_is_picked_at_random_stay_out(release):
    answer = release("setattr").ask("--api-key", "hunter2")
    assert answer.outcome == "ok"
    assert {"api_key", "random_seed"}.isdisjoint(answer.effective)
    assert "hunter2" not in repr(answer)


@pytest.mark.parametrize(("name", "message"), [("setattr", "pp_size 8 is too much for key …"), ("declare", "AssertionError")])
def test_a_refusal_names_its_message_and_line_without_the_secret(release, name, message):
    one = release(name)
    key = ["--api-key", "hunter2"] if name == "setattr" else []
    answer = one.ask("--pp-size", "8", *key)
    assert (answer.outcome, answer.message, answer.source) == ("fatal", message, one.line(ARGS, "raised"))


def test_a_secret_that_is_not_in_argv_stays_out_of_the_message(release):
    answer = release("setattr").ask("--pp-size", "8", FAKE_KEY="hunter3")
    assert answer.message == "pp_size 8 is too much for key …"


@pytest.mark.parametrize("name", ["setattr", "declare"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope"], "unrecognized arguments: --nope"),
        (["--pp-size", "two"], "argument --pp-size: invalid int value: 'two'"),
    ],
)
def test_what_the_parser_refuses_is_quoted(release, name, words, message):
    answer = release(name).ask(*words)
    assert (answer.outcome, answer.message) == ("parse_error", message)


def test_plugins_are_loaded_as_the_launcher_does(release):
    one = release("declare")
    answer = one.ask(FAKE_PLUGIN="1")
    assert answer.effective["attention_backend"] == "triton"
    assert where(answer, "attention_backend")[-1] == one.line("srt/plugins.py", "set: attention_backend")


def test_no_answer_in_time_says_how_long_it_waited_and_what_was_said_last(release):
    start = time.monotonic()
    answer = release("setattr").ask(FAKE_SLEEP="60", timeout_s=2)
    assert time.monotonic() - start < 20
    assert answer.outcome == "unavailable"
    assert "no answer within 2 s" in answer.message
    assert "waiting for a card that does not answer" in answer.message


def test_too_much_memory_ends_it(release):
    answer = release("setattr").ask(FAKE_MIB="400", memory_mib=200)
    assert answer.outcome == "unavailable"
    assert "more than 200 MiB" in answer.message


def test_an_interpreter_that_just_ends_is_no_answer(release):
    answer = release("setattr").ask(FAKE_EXIT="9")
    assert answer.outcome == "unavailable"
    assert "ended with status 9 and no answer" in answer.message


@pytest.mark.parametrize("python", ["/nowhere/bin/python", "/etc/passwd", "/bin/false"])
def test_what_is_no_interpreter_is_no_answer(python):
    answer = Interpreter(python).ask(["--model-path", "m"])
    assert answer.outcome == "unavailable"
    assert python in answer.message


def test_a_missing_package_is_no_answer_and_named(release, tmp_path):
    package = tmp_path / "sglang" / "srt"
    package.mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").write_text("")
    (package / "server_args.py").write_text("import a_package_nobody_has\n")
    answer = release("setattr").ask(path=tmp_path)
    assert answer.outcome == "unavailable"
    assert "No module named 'a_package_nobody_has'" in answer.message


def test_a_failure_of_the_machine_is_no_refusal(release):
    answer = release("setattr").ask(FAKE_ERROR="CUDA out of memory")
    assert (answer.outcome, answer.message) == ("unavailable", "ValueError: the cards cannot be asked")


def running(pattern: str) -> list[str]:
    out = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines() if pattern in line]


def test_what_the_release_starts_ends_with_the_answer(release):
    length = f"3{os.getpid()}"
    assert release("setattr").ask(FAKE_CHILD=length).outcome == "ok"
    assert running(f"sleep {length}") == []


def test_nothing_is_left_when_the_asker_is_killed(release, fixtures):
    length = f"4{os.getpid()}"
    asked = {"PYTHONPATH": str(release("setattr").root), "FAKE_CHILD": length, "FAKE_SLEEP": "60"}
    code = (
        "import sys; from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Interpreter;"
        f"Interpreter(sys.executable, {asked!r}).ask(['--model-path', 'm'])"
    )
    env = {**os.environ, "PYTHONPATH": str(fixtures.parents[1] / ".collections")}
    asker = subprocess.Popen([sys.executable, "-c", code], env=env)
    try:
        until(lambda: running(f"sleep {length}"), "the release never got to start its child")
        asker.send_signal(signal.SIGKILL)
        asker.wait()
        until(lambda: not running(f"sleep {length}"), "the process outlived its asker")
    finally:
        asker.kill()
        for pid in running(f"sleep {length}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def until(holds, complaint: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, complaint
        time.sleep(0.1)


def test_the_environment_is_the_servers_and_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("OWN_SECRET", "x")
    made = Interpreter("python", {"SGLANG_X": "1"})._environment(tmp_path)
    assert made["CUDA_VISIBLE_DEVICES"] == "3"
    assert (made["SGLANG_X"], made["HF_HUB_OFFLINE"], made["HOME"]) == ("1", "1", str(tmp_path))
    assert "OWN_SECRET" not in made
    assert Interpreter("python", {"CUDA_VISIBLE_DEVICES": "0"})._environment(tmp_path)["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize("module", [probe, recorder, lines])
def test_what_runs_under_the_engine_needs_python_3_10_only(module):
    ast.parse(Path(module.__file__).read_text(encoding="utf-8"), feature_version=(3, 10))


def test_a_user_who_is_not_there_yet_is_no_answer(monkeypatch):
    monkeypatch.setattr(ask.os, "geteuid", lambda: 0)
    answer = Interpreter(sys.executable, user="nobody-of-that-name").ask([])
    assert (answer.outcome, answer.message) == ("unavailable", "there is no user nobody-of-that-name on this host yet")
