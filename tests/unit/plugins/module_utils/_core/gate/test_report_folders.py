# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Any folder renders: cut at any byte, with any value in any place; and never shows a pass that its file does not hold."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report import REPORTS, write_reports
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.report_data import read_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FILES = ("result.json", "samples.jsonl", "gpu.jsonl", "progress.jsonl")
EVIL = '<script>alert("x")</script>|`*&'
JUNK = (
    None,
    True,
    0,
    -1,
    3.5,
    1e308,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "pass",
    EVIL,
    [],
    [1, [2]],
    {},
    {"p50": "x"},
    [[]],
)
LIMIT = {
    "metric": "max_ttft_p99_ms",
    "limit": 900.0,
    "value": 700.0,
    "ci": [650.0, 800.0],
    "n": 40,
    "verdict": "pass",
    "why": "w",
}
POINT = {
    "concurrency": 2, "rate": None, "output_tokens_per_s": 50.0, "ci": [49.0, 51.0], "goodput_ratio": 1.0, "window_s": 2.0,
    "ttft_ms": {"p50": 500.0, "p90": 600.0, "p99": None, "n": 12}, "tpot_ms": {"p50": 40.0}, "itl_ms": {"p50": 40.0, "n": 300},
    "requests": {"planned": 14, "ok": 12, "failed": 0, "cancelled": 2}, "bound_tokens_per_s": 90.0, "verdict": "pass",
    "fillings": {"filled_tokens_per_s": 90.0, "serial_tokens_per_s": 60.0}, "headroom": "passes, but would give up to 1.8 ×",
    "window_ns": [10**9, 3 * 10**9], "limits": [LIMIT, {**LIMIT, "metric": "min_output_tokens_per_s", "limit": 40.0}],
}  # fmt: skip
SCORE = {"items": 9, "right": 8, "ratio": 0.9, "ci": [0.6, 1.0], "kinds": {"sum": [4, 5], "day": [4, 4]}, "limits": [LIMIT],
         "verdict": "pass", "wrong": [{"kind": "sum", "prompt": "1+1", "answer": "3", "why": "2 was right"}]}  # fmt: skip
RESULT = {
    "schema": 1, "verdict": "pass", "finished": True, "reasons": ["why"], "notes": ["n"], "started_at": "2026", "plan": {
        "model": "m", "confidence": 0.95}, "points": [POINT, {**POINT, "rate": 2.0}], "correctness": {"graded": SCORE,
        "multi_turn": {"cached_tokens": 64}, "long_context": {"input_tokens": 9, "answer": "7", "ttft_s": 1.5}},
    "gpus": [{"uuid": "GPU-1-2", "index": 0, "stage": 0, "name": "x", "power_w": {"mean": 80.0, "max": 90.0, "limit": 600.0},
              "utilization_ratio": 0.5, "throttle": ["heat"]}], "engine": {"version": "0.5.23", "simulated": True,
        "resolved": {"pp_size": 8, "cuda_graph_config": {"decode": 1}}, "graph_passes": {"decode": {"graph": 1, "eager": 2}}},
    "diagnosis": [{"code": "GATE-FILL", "message": "m", "evidence": {"a": [1, 2]}, "do": "d"}], "asked": {"pp_size": 4},
    "check": {"findings": [{"code": "SGA1", "message": "m", "level": "advice", "accepted": {"reason": "r"}}]},
    "bound": {"assumptions": ["even"]}, "release": {"id": "1"}, "environment": {"os": "x"},
}  # fmt: skip
REQUEST = {
    "point": 0, "concurrency": 2, "request": 1, "phase": "window", "planned_ns": 10**9, "first_ns": 2 * 10**9,
    "first_answer_ns": None, "end_ns": 3 * 10**9, "chunks": [[2 * 10**9, 1], [3 * 10**9, 2]], "status": "ok",
    "ttft_ms": 1000.0, "tpot_ms": 500.0, "e2e_ms": 2000.0,
}  # fmt: skip
READING = {"ns": 10**9, "gpus": [{"index": 0, "power_w": 80.0, "utilization_ratio": 0.5}], "host": {"cpu_ratio": 0.5}}
LINE = {"t": 1.0, "text": "gate: 8 in flight"}


def fill(folder, result=RESULT, request=REQUEST, reading=READING, line=LINE):
    def lines(*rows):
        return "".join(json.dumps(row) + "\n" for row in rows)

    (folder / "result.json").write_text(json.dumps(result))

    def later(row, **changes):
        return {**row, **changes} if isinstance(row, dict) else row

    (folder / "samples.jsonl").write_text(lines(request, later(request, point=1), reading, later(reading, ns=2 * 10**9)))
    (folder / "gpu.jsonl").write_text(lines(reading, later(reading, ns=3 * 10**9)))
    (folder / "progress.jsonl").write_text(lines(line))
    return folder


def rendered(folder):
    write_reports(folder)
    return {name: (folder / name).read_text(encoding="utf-8") for name in REPORTS}


def shows_a_pass(texts):
    """Whether any of the reports says of the whole run that it passed."""
    verdict = ET.fromstring(texts["junit.xml"]).find("testcase[@name='verdict']")
    return "<h1>pass</h1>" in texts["report.html"] or "gate: pass" in texts["report.md"] or len(verdict) == 0


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def put(value, path, junk):
    if not path:
        return junk
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return changed


def test_a_whole_folder_shows_everything_and_the_pass_it_holds(tmp_path):
    texts = rendered(fill(tmp_path))
    assert shows_a_pass(texts)
    for wanted in (
        "8 of 9",
        "cached turns",
        "60 %",
        "Load host over time",
        "Output tok/s by arrival rate",
        "serial 60",
        "give up to 1.8",
    ):
        assert wanted in texts["report.html"], wanted


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FILES), st.floats(0, 1, exclude_max=True))
def test_a_file_cut_at_any_byte_renders_and_passes_only_when_whole(tmp_path, name, part):
    fill(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(len(whole) * part)])
    assert shows_a_pass(rendered(tmp_path)) == (name != "result.json")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["result", "request", "reading", "line"]), st.data())
def test_any_value_in_any_place_renders_escaped(tmp_path, kind, data):
    original = {"result": RESULT, "request": REQUEST, "reading": READING, "line": LINE}[kind]
    path = data.draw(st.sampled_from(list(places(original))))
    changed = put(original, path, data.draw(st.sampled_from(JUNK)))
    try:
        texts = rendered(fill(tmp_path, **{kind: changed}))
    except InferopsError as exc:
        assert "holds no gate result" in exc.what
        return
    held = json.loads((tmp_path / "result.json").read_text())
    passes = isinstance(held, dict) and held.get("verdict") == "pass" and held.get("finished") is not False
    assert shows_a_pass(texts) == passes
    assert "<script" not in texts["report.html"] + texts["report.md"] + texts["junit.xml"]
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*</style>", "", texts["report.html"]))


def test_cards_that_were_not_read_in_any_window_are_no_row_of_dashes(tmp_path):
    unread = {**RESULT["gpus"][0], "samples": 0, "power_w": {"mean": None, "max": None, "limit": 600.0}}
    page = rendered(fill(tmp_path, result={**RESULT, "points": [], "gpus": [unread]}))["report.html"]
    assert "Stages, mean over the windows" not in page
    assert "Cards over time" in page
    assert "Stages, mean over the windows" in rendered(fill(tmp_path))["report.html"]


def test_the_short_report_has_no_empty_table_and_tells_what_is_left(tmp_path):
    assert "| load |" not in rendered(fill(tmp_path, result={**RESULT, "points": []}))["report.md"]
    short = rendered(fill(tmp_path))["report.md"]
    assert "| load |" in short
    assert "- 2 in flight: passes, but would give up to 1.8 ×" in short
    assert "- graded set: **pass**, 8 of 9 right" in short


def test_answers_come_before_the_evidence(tmp_path):
    page = rendered(fill(tmp_path))["report.html"]
    assert page.index("<h2>Points") < page.index("<h2>Answers") < page.index("<h2>Diagnosis")


def test_nothing_but_listed_places_of_a_secret_is_shown(tmp_path):
    secret = "sk-very-secret"
    result = copy.deepcopy(RESULT)
    result["engine"]["resolved"] |= {"api_key": secret, "launch_command": secret, "hf_token": secret}
    result |= {"api_key": secret, "environment": {"token": secret}, "asked": {"admin_api_key": secret}}
    fill(tmp_path, result=result, request={**REQUEST, "headers": secret, "error": secret})
    assert not any(secret in text for text in rendered(tmp_path).values())


def test_a_run_of_another_form_is_read_the_same(tmp_path):
    """Readings lie in samples.jsonl, in older runs in gpu.jsonl."""
    fill(tmp_path)
    newer = read_folder(tmp_path)
    (tmp_path / "gpu.jsonl").unlink()
    assert [len(card.seconds) for card in newer.cards + read_folder(tmp_path).cards] == [4, 2]


@pytest.mark.parametrize("finished", [True, False])
def test_a_pass_that_is_not_the_last_word_is_none(tmp_path, finished):
    assert shows_a_pass(rendered(fill(tmp_path, result={**RESULT, "finished": finished}))) == finished
