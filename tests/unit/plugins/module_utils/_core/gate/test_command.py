# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The commands: exit status says pass, fail, could not run or inconclusive; incomparable results are refused."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.compare import compare_results

from .paced_server import Pace, serving

PLAN = {"input_tokens": 8, "output_tokens": 10, "min_seconds_per_point": 0.2, "max_seconds_per_point": 3}


def point(rate, **changes):
    return {
        "concurrency": 1,
        "output_tokens_per_s": rate,
        "ci": [rate - 1, rate + 1],
        "cached_tokens_ratio": 0.0,
        "input_tokens": {"mean": 512},
        "output_tokens": {"mean": 256},
        **changes,
    }


def result(*points, version="0.5.23", **plan):
    wanted = {"input_tokens": 512, "output_tokens": 256, "temperature": 1.0, **plan}
    return {"finished": True, "plan": wanted, "engine": {"version": version}, "points": list(points)}


@pytest.mark.parametrize(
    ("limit", "pace", "status"),
    [
        (1, Pace(ttft_s=0.05, itl_s=0.002), 0),
        (1e6, Pace(ttft_s=0.05, itl_s=0.002), 1),
        (1, Pace(cached_tokens=8, ttft_s=0.05, itl_s=0.002), 3),
    ],
)
def test_exit_status_r93(limit, pace, status, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({**PLAN, "points": [{"concurrency": 1, "min_output_tokens_per_s": limit}]}))
    with serving(pace) as url:
        assert (
            main(["gate", "--base-url", url, "--plan", str(plan), "--out", str(tmp_path / "out"), "--format", "json"]) == status
        )
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == 1
    assert "tok/s" in err


def test_what_cannot_run_has_its_own_status(tmp_path, capsys):
    plan = tmp_path / "plan.yml"
    plan.write_text("points: [{concurrency: 1, min_outputs: 3}]\n")
    assert main(["gate", "--base-url", "http://127.0.0.1:9", "--plan", str(plan), "--out", str(tmp_path / "out")]) == 2
    assert "min_outputs is not a limit of the gate" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "absent")]) == 2


@pytest.mark.parametrize(
    ("other", "refusal"),
    [
        (result(point(30), output_tokens=128), "output_tokens"),
        (result(point(30), version="0.5.20"), "engine version"),
        (result(point(30, cached_tokens_ratio=0.5)), "cached share"),
        (result(point(30, input_tokens={"mean": 400})), "real input_tokens"),
        (result(point(30, concurrency=2)), "no concurrency"),
        ({**result(point(30)), "finished": False}, "not finished"),
    ],
)
def test_incomparable_results_are_refused(other, refusal):
    answer = compare_results(result(point(30)), other)
    assert not answer["comparable"]
    assert any(refusal in line for line in answer["refusals"])


def test_a_change_is_real_when_the_intervals_part():
    words = [compare_results(result(point(30)), result(point(rate)))["points"][0]["word"] for rate in (31, 35, 25)]
    assert words == ["within noise", "faster", "slower"]
