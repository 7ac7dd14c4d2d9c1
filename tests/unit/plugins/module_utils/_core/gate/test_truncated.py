# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder of a real run whose files are cut at any byte: a report or a clear message, never a traceback, never a pass."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import detached
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import Nvml
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .fake_pynvml import FakePynvml
from .paced_server import Pace, serving

FILES = ("result.json", "samples.jsonl", "progress.jsonl")
REPORTS = ("report.html", "report.md", "junit.xml")
PLAN = {
    **{"input_tokens": 16, "output_tokens": 12, "min_seconds_per_point": 0.2, "max_seconds_per_point": 4},
    "points": [{"concurrency": 2, "min_output_tokens_per_s": 1}, {"concurrency": 1}],
}
CUTS = st.fixed_dictionaries({}, optional=dict.fromkeys(FILES, st.floats(0, 1)))
ANY_CUT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    with serving(Pace(ttft_s=0.02, itl_s=0.002)) as url:
        result = run_gate(url, GatePlan.from_dict(PLAN), folder, open_nvml=lambda: Nvml(FakePynvml()))
    assert result["verdict"] == "pass"
    return folder


def cut(whole, folder, cuts):
    """Copy a folder with files cut at a share of their bytes; return whether the result is still whole."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    for name in REPORTS:
        (folder / name).unlink()
    for name, part in cuts.items():
        data = (whole / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * part)])
    held = (folder / "result.json").read_bytes().rstrip()
    return held == (whole / "result.json").read_bytes().rstrip()


def told(*words):
    """Return (status, what was printed) of the program."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return status, out.getvalue() + err.getvalue()


def shown_verdicts(folder):
    """The word of the run in each report."""
    page, short = ((folder / name).read_text(encoding="utf-8") for name in REPORTS[:2])
    case = ET.fromstring((folder / "junit.xml").read_text(encoding="utf-8")).find("testcase[@name='verdict']")
    return {"<h1>pass</h1>" in page, "# Throughput gate: pass" in short, len(case) == 0}


@ANY_CUT
@given(CUTS)
def test_a_report_or_a_message_and_a_pass_only_of_a_whole_result(whole, tmp_path, cuts):
    folder = tmp_path / "cut"
    passes = cut(whole, folder, cuts)
    status, said = told("report", folder)
    if status == 0:
        assert shown_verdicts(folder) == {passes}
    else:
        assert (status, passes) == (2, False)
        assert "holds no gate result" in said
        assert not any((folder / name).exists() for name in REPORTS)


def test_every_byte_around_the_ends_of_lines(whole, tmp_path):
    """Where a cut does most: just before, at and after each end of a line of the result, and in the middle of a letter."""
    text = (whole / "result.json").read_bytes()
    ends = [place for place, byte in enumerate(text) if byte == 10]
    for place in sorted({*range(40), *ends[::9], *(end + 1 for end in ends[::9]), len(text) - 2, len(text) - 1, len(text)}):
        folder = tmp_path / "cut"
        passes = cut(whole, folder, {"result.json": place / len(text)})
        assert told("report", folder)[0] == 0
        assert shown_verdicts(folder) == {passes}, place


@ANY_CUT
@given(st.floats(0, 1))
def test_a_cut_result_is_not_compared(whole, tmp_path, part):
    folder = tmp_path / "cut"
    passes = cut(whole, folder, {"result.json": part})
    for pair in ((folder, whole), (whole, folder)):
        status, said = told("compare", *pair)
        assert status == (0 if passes else 2)
        assert passes or "gate result" in said


@ANY_CUT
@given(st.floats(0, 1))
def test_a_task_that_follows_says_so_too(whole, tmp_path, part):
    folder = tmp_path / "cut"
    passes = cut(whole, folder, {"result.json": part})
    run = detached.Run(folder, "1", 1, 1)
    try:
        assert (detached.outcome(run)["verdict"] == "pass") == passes
    except InferopsError as exc:
        assert not passes
        assert "gate result" in exc.what


def junk_places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from junk_places(inner, (*path, key))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_result_with_anything_in_any_place_is_compared_or_refused(whole, tmp_path, data):
    result = json.loads((whole / "result.json").read_text(encoding="utf-8"))
    path = data.draw(st.sampled_from([each for each in junk_places(result) if each]))
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        del inner[path[-1]]
    else:
        inner[path[-1]] = data.draw(
            st.sampled_from([None, True, 0, -1, 1e308, "", "x", [], [1], [None, None], {}, {"mean": "x"}])
        )
    (tmp_path / "odd.json").write_text(json.dumps(result), encoding="utf-8")
    for pair in ((tmp_path / "odd.json", whole), (whole, tmp_path / "odd.json")):
        for form in ("text", "json"):
            assert told("compare", *pair, "--format", form)[0] in (0, 1, 2)


def test_no_single_key_is_taken_for_granted_by_a_comparison(whole, tmp_path):
    result = json.loads((whole / "result.json").read_text(encoding="utf-8"))
    point = result["points"][0]
    odd = [{key: value for key, value in result.items() if key != left_out} for left_out in result]
    odd += [
        {**result, "points": [{key: value for key, value in point.items() if key != left_out}, *result["points"][1:]]}
        for left_out in point
    ]
    for each in odd:
        (tmp_path / "odd.json").write_text(json.dumps(each), encoding="utf-8")
        for pair in ((tmp_path / "odd.json", whole), (whole, tmp_path / "odd.json")):
            assert told("compare", *pair)[0] in (0, 1)
