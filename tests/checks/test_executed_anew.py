"""What is recorded of SGLang's argument code is what it does: a sample is executed anew, in the oracle's environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import environment
import executor
import recorded
import run as oracle
import score as scoring

# One release per shape of the argument code: calls of add_argument, annotated fields, fields split over files.
SHAPES = ("0.4.10.post2", "0.5.14", "0.5.23")
# One host, so that SGLang is imported once per release.
HARDWARE = "8xRTXPRO6000"
SAMPLE = 14


@pytest.fixture(scope="module", params=SHAPES)
def release(request):
    return request.param, environment.ensure(request.param)


def _sample(cases):
    """Every n-th case, and with a twin its other half."""
    here = [case for case in cases if case["hardware"] == HARDWARE and not case.get("env")]
    chosen = here[:: max(1, len(here) // SAMPLE)]
    wanted = {case["id"] for case in chosen} | {case["twin"] for case in chosen if "twin" in case}
    return [case for case in here if case["id"] in wanted]


def test_cases_end_as_recorded(release):
    version, place = release
    sample = _sample(oracle.read_recording(version)[0])
    assert len(sample) >= SAMPLE

    halves = {case["id"] for case in sample if "effective" in case}
    executed = [
        recorded.trim(case, scoring.KEY, half=case["id"] in halves) for case in executor.execute(place, map(_question, sample))
    ]

    by_name = {case["id"]: case for case in executed}
    assert [by_name[case["id"]] for case in sample] == sample


def _question(case):
    return {
        key: case[key] for key in ("id", "sglang_version", "argv", "model_config", "hardware", "files", "twin") if key in case
    }


def test_the_parser_has_the_flags_that_are_recorded(release):
    version, place = release
    table = executor.flag_table(place, version)

    assert oracle.kept_of(table) == oracle.read_recording(version)[1]
