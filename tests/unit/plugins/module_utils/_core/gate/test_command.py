# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The commands: exit status says pass, fail, could not run or inconclusive; incomparable results are refused."""

from __future__ import annotations

import json
import random

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.compare import compare_results

from .paced_server import Pace, serving

PLAN = {"input_tokens": 8, "output_tokens": 10, "min_seconds_per_point": 0.2, "max_seconds_per_point": 3}


def point(speed, **changes):
    return {
        "concurrency": 1,
        "output_tokens_per_s": speed,
        "ci": [speed - 1, speed + 1],
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
        (result(point(30), temperature=0.0), "temperature: 1 and 0"),
        (result(point(30), endpoint="chat"), "endpoint: completions and chat"),
        (result(point(30, output_tokens={"mean": 200})), "real output_tokens"),
        (result(point(30, cached_tokens_ratio=None)), "cached share"),
        (result(point(30, rate=2.0, arrivals="poisson")), "no load"),
        (result(point(30, concurrency=2)), "no load"),
        ({**result(point(30)), "finished": False}, "not finished"),
    ],
)
def test_incomparable_results_are_refused(other, refusal):
    answer = compare_results(result(point(30)), other)
    assert not answer["comparable"]
    assert any(refusal in line for line in answer["refusals"])


def test_arrivals_of_another_kind_are_another_load():
    made = [
        result(point(30, rate=2.0, arrivals=kind), point(9, rate=1.0, arrivals="poisson")) for kind in ("poisson", "constant")
    ]
    answer = compare_results(*made)
    assert answer["refusals"] == ["2 requests/s: arrivals poisson and constant"]
    assert compare_results(made[0], made[0])["comparable"]


def test_a_change_is_real_when_the_intervals_part():
    changes = [compare_results(result(point(30)), result(point(rate)))["points"][0] for rate in (31, 35, 25)]
    assert [change["word"] for change in changes] == ["within noise", "faster", "slower"]
    assert changes[1]["ratio"] == pytest.approx(35 / 30)
    assert changes[1]["ratio_ci"] == pytest.approx([34 / 31, 36 / 29])


@pytest.mark.parametrize("ci", [None, [-1, 31], [0, 31], [1, 0]])
def test_a_ratio_without_an_interval_of_both_has_none(ci):
    change = compare_results(result(point(30, ci=ci)), result(point(35)))["points"][0]
    assert (change["ratio_ci"], change["word"]) == (None, "no interval to tell noise from change")


def test_a_ratio_is_inside_its_interval_as_often_as_it_says():
    """Two runs of the same server: their intervals at 95 % part in far fewer than 5 % of the pairs."""
    source = random.Random(0)

    def measured():
        rate = source.gauss(100, 1)
        return result(point(rate, ci=[rate - 1.96, rate + 1.96]))

    words = [compare_results(measured(), measured())["points"][0]["word"] for dummy in range(2000)]
    assert words.count("within noise") / len(words) > 0.98


def test_an_upgrade_is_compared_when_that_is_the_question(tmp_path, capsys):
    for name, version in (("a", "0.5.20"), ("b", "0.5.23")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(result(point(30), version=version)))
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["compare", *folders]) == 1
    assert "engine version: 0.5.20 and 0.5.23" in capsys.readouterr().out
    assert main(["compare", "--any-engine", *folders]) == 0
    assert "within noise" in capsys.readouterr().out
