# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The word of the gate against servers whose true rate is known, in virtual time: seldom wrong, and soon."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from statistics import fmean

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import stats
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.looks import Looks

BENCHMARK = Path(__file__).resolve().parents[6] / "benchmarks" / "gate" / "decisions.py"
RUNS = 60


@pytest.fixture(scope="module")
def decisions():
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("decisions", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["decisions"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def words(decisions, kind, distance):
    return [decisions.decide(kind, f"{kind.name}/{run}", side * distance) for run in range(RUNS) for side in (1, -1)]


def wrong(made):
    """Share of wrong words: even places are above the limit, odd ones below."""
    return fmean(one.word == ("fail" if at % 2 == 0 else "pass") for at, one in enumerate(made))


@pytest.mark.parametrize("index", [0, 3, 6])
def test_five_per_cent_from_the_limit_the_word_is_right_and_soon(decisions, index):
    """Independent noise, a speed that wanders, cohorts that stay together: see benchmarks/gate/decisions.py for all."""
    kind = decisions.KINDS[index]
    made = words(decisions, kind, 0.05)
    assert wrong(made) <= 1 / RUNS
    assert fmean(one.word == "inconclusive" for one in made) <= 0.05
    assert fmean(one.seconds for one in made) < 45


def test_a_server_on_its_limit_seldom_gets_a_word_that_noise_made(decisions):
    """Where rounds follow each other, an interval that took them for independent would be wrong three times as often."""
    made = words(decisions, decisions.KINDS[3], 0.005)
    assert wrong(made) < 0.1


def test_looks_are_spaced_and_leave_the_load_its_time():
    looks, taken = Looks(), []
    for known in range(200):
        if looks.due(known, known * 1000):
            taken.append(known)
    assert taken[:3] == [3, 4, 5]
    assert len(taken) < 32
    looks = Looks()
    assert looks.due(3, 0)
    looks.took(0, 100)
    assert not looks.due(50, 3000)
    assert looks.due(50, 3200)


def test_groups_that_differ_count_for_fewer_samples():
    alike, apart = [[0.0, 1.0]] * 20, [[0.0, 0.0], [1.0, 1.0]] * 10
    assert stats.design_effect(alike, 0.5) == 1
    assert stats.design_effect(apart, 0.5) == pytest.approx(2, rel=0.1)
    assert stats.design_effect([[1.0]] * 20, 0.5) == 1
