# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a person reads in a terminal: 80 columns, every point, verdict first, nothing cut off, nothing raised."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import report_format, tables
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.compare import compare_results
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.terminal import summary, table
from hypothesis import given
from hypothesis import strategies as st

from .paced_server import Pace, serving
from .test_report_folders import JUNK, RESULT, places, put


@pytest.mark.parametrize("module", [tables, report_format])
def test_examples_hold(module):
    assert doctest.testmod(module).failed == 0


POINT = {
    "concurrency": 1024, "rate": None, "output_tokens_per_s": 15123.4, "ci": [15101.2, 15145.6], "bound_tokens_per_s": 41000.0,
    "ttft_ms": {"p50": 12345.6}, "tpot_ms": {"p50": 1234.5}, "verdict": "inconclusive",
    "limits": [{"metric": "min_output_tokens_per_s", "limit": 16000.0, "value": 15123.4, "verdict": "fail"}],
}  # fmt: skip
SMALL = {**POINT, "concurrency": 1, "output_tokens_per_s": 35.6, "ci": None, "limits": [], "verdict": "observed"}


def test_the_table_fits_80_columns_with_large_figures():
    head, first, second = table({"points": [SMALL, POINT]})
    assert head.split() == ["load", "tok/s", "interval", "limit", "of", "bound", "TTFT", "ms", "TPOT", "ms", "verdict"]
    assert first.split() == ["1", "35.6", "–", "–", "0", "%", "12,346", "1,234.5", "observed"]
    assert max(map(len, (head, first, second))) <= 80
    assert "15,101 … 15,146" in second


def test_what_is_known_of_no_point_has_no_column():
    bare = {"concurrency": 4, "output_tokens_per_s": 9.0, "verdict": "observed"}
    assert table({"points": [bare]}) == ["load  tok/s  verdict", "4       9.0  observed"]
    assert table({"points": []}) == []


@given(st.data())
def test_any_value_in_any_place_is_told(data):
    path = data.draw(st.sampled_from([place for place in places(RESULT) if place]))
    text = summary(put(RESULT, path, data.draw(st.sampled_from(JUNK))), Path("gate"))
    assert text.splitlines()[0].startswith("verdict: ")
    assert text.endswith("report: gate/report.html")


def test_the_command_tells_the_table_once_and_a_follower_gets_it_too(tmp_path, capsys):
    plan = {
        **{"input_tokens": 16, "output_tokens": 10, "min_seconds_per_point": 0.2, "max_seconds_per_point": 3},
        "points": [{"concurrency": 2, "min_output_tokens_per_s": 1e6}],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with serving(Pace(ttft_s=0.02, itl_s=0.002)) as url:
        words = ["gate", "--base-url", url, "--plan", str(tmp_path / "plan.json"), "--out", str(tmp_path / "out")]
        assert main(words) == 1
    out, err = capsys.readouterr()
    assert out.startswith("verdict: fail\nload ")
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert "TPOT" not in err
    told = [json.loads(line) for line in (tmp_path / "out" / "progress.jsonl").read_text().splitlines()]
    assert [line["text"].split()[0] for line in told if line["state"] == "table"] == ["load", "2"]
    assert told[-1]["state"] == "done"


def test_two_results_stand_side_by_side():
    def result(rate, ci):
        point = {
            "concurrency": 16,
            "output_tokens_per_s": rate,
            "ci": ci,
            "input_tokens": {"mean": 512},
            "output_tokens": {"mean": 256},
        }
        plan = {"input_tokens": 512, "output_tokens": 256, "temperature": 1.0}
        return {
            "verdict": "pass",
            "finished": True,
            "started_at": "2026-12-01",
            "engine": {"version": "0.5.23"},
            "plan": plan,
            "points": [point],
        }

    answer = compare_results(result(129.8, [129.4, 130.1]), result(156.4, [155.9, 156.9]))
    assert answer["lines"] == [
        "A: pass, 2026-12-01, SGLang 0.5.23",
        "B: pass, 2026-12-01, SGLang 0.5.23",
        "load          A tok/s       interval  B tok/s       interval",
        "16 in flight    129.8  129.4 … 130.1    156.4  155.9 … 156.9",
        "load          B / A       interval   change",
        "16 in flight  1.205  1.198 … 1.213  +20.5 %  faster",
    ]
    assert max(map(len, answer["lines"])) <= 80
