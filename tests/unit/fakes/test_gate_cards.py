# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A gate beside cards of stand-in drivers in C (NVML, CUDA), with real processes: shared or not, gone silent, hanging."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gate_process import KIMI, PLAN, PROGRAM, said

pytest.importorskip("pynvml")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not part of the released collection")
BUILD = Path(__file__).resolve().parents[2] / "fakes" / "build"
QUICK = {**PLAN, "points": PLAN["points"][:1], "correctness": {"multi_turn": False, "tool_calls": False}}
# Progress is told every two seconds: long enough for something to happen in the window, and for a while after it.
WHOLE = {**QUICK, "min_seconds_per_point": 4}
AT_FULL_SPEED = ",".join(["1600"] * 8)


@pytest.fixture(scope="session")
def drivers(nvml_library):
    """The folder with both libraries, as the loader wants it."""
    subprocess.run([sys.executable, str(BUILD), "cuda", str(nvml_library.parent)], check=True, capture_output=True)
    return str(nvml_library.parent)


@pytest.fixture
def beside(start, gate, drivers, tmp_path):
    """beside(machine, cuda) → a gate whose cards do what the file ``beside.conf`` says, each measured at 1600 GB/s before."""
    conf, known = tmp_path / "nvml.conf", tmp_path / "context.json"
    known.write_text(json.dumps({"bandwidths_gb_s": [1600.0] * 8}))

    def started(machine, cuda=AT_FULL_SPEED, plan=WHOLE):
        conf.write_text(machine)
        files = {"INFEROPS_FAKE_NVML_CONF": str(conf), "INFEROPS_FAKE_NVML_STATE": str(tmp_path / "none")}
        environment = {"LD_LIBRARY_PATH": drivers, "INFEROPS_FAKE_CUDA": cuda, **files}
        return gate(start(*KIMI, timescale=50).url, plan, None, "--context", known, **environment)

    started.conf = conf
    return started


def cards(**facts):
    return "".join(f"gpu {index} {name} {value}\n" for name, values in facts.items() for index, value in values.items())


OURS = cards(pid=dict.fromkeys(range(8), os.getpid()))


@pytest.mark.parametrize(
    ("cuda", "status", "word"),
    [
        pytest.param(AT_FULL_SPEED, 0, "free", id="only telemetry says so"),
        pytest.param("1600,1600,700," + AT_FULL_SPEED, 3, "shared", id="so does the copy"),
        pytest.param(AT_FULL_SPEED + ";fail cuMemAlloc_v2 2", 3, "unknown", id="no copy can be made"),
    ],
)
def test_a_card_that_is_busy_before_any_load(beside, cuda, status, word):
    run = beside(OURS + cards(util={2: 97}), cuda, QUICK)
    assert run.ended() == status, run.log.seek(0) or run.log.read()
    card = run.result()["gpus"][2]
    assert card["sharing"]["verdict"] == word
    assert (card["utilization_ratio"] is None) == (word == "free")
    assert said(run, "card 2") == (word != "free")


def test_a_process_of_others_that_comes_during_the_load_and_takes_half_of_a_card(beside):
    run = beside(OURS, "1600,800," + AT_FULL_SPEED).until("in window")
    beside.conf.write_text(OURS + cards(pid={1: 4242424}))
    assert run.ended() == 3
    assert said(run, "is shared: process 4242424 of others is on it, and a timed copy is slow")
    assert [card["sharing"] is None for card in run.result()["gpus"]] == [index != 1 for index in range(8)]


def test_nvml_that_vanishes_during_the_run_leaves_what_was_read_and_no_zero(beside):
    run = beside(OURS + cards(power_mw={0: 85_000})).until("in window")
    beside.conf.write_text(cards(lost=dict.fromkeys(range(8), 1)))
    assert run.ended() == 0
    result = run.result()
    assert sum("no longer answers: what it does is unknown since then" in note for note in result["notes"]) == 8
    assert result["points"][0]["gpus"][0]["power_w"]["mean"] == 85
    lines = [json.loads(line) for line in (run.out / "samples.jsonl").read_text().splitlines()]
    last = [line["gpus"][0] for line in lines if "gpus" in line][-1]
    assert (last["power_w"], last["utilization_ratio"]) == (None, None)
    run.rendered()


def test_a_driver_that_hangs_during_the_run_holds_nothing_up(beside):
    run = beside(OURS).until("in window")
    beside.conf.write_text(OURS + "fail nvmlDeviceGetPowerUsage -1\n")
    assert run.ended() == 0
    assert run.result()["points"][0]["gpus"][0]["samples"] < 5 * run.result()["points"][0]["window_s"] / 2 + 5
    run.rendered()
