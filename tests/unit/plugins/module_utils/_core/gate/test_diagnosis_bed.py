# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One cause at a time and in pairs on two models of the engine, in virtual time, with faults drawn at random: named first.

``benchmarks/diagnosis.py`` does the same at length and prints what is taken for what.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[6] / "benchmarks" / "diagnosis.py"
pytestmark = pytest.mark.skipif(not BENCHMARK.exists(), reason="the benchmark is not part of the released collection")
MODELS = ("cohorts", "continuous")


@pytest.fixture(scope="module")
def bed():
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("diagnosis_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["diagnosis_benchmark"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def test_each_cause_alone_comes_first(bed):
    """Each cause on one of the models, the next one on the other."""
    firsts = {
        cause: (bed.named(MODELS[at % 2], (cause,), "unit") or ["nothing"])[0] for at, cause in enumerate(sorted(bed.CAUSES))
    }
    assert {cause: first for cause, first in firsts.items() if first not in bed.CAUSES[cause][1]} == {}


def test_of_two_causes_one_comes_first_and_mostly_both_are_named(bed):
    chance, both = random.Random("unit"), 0
    for turn, pair in enumerate(chance.sample(bed.pairs(), 10)):
        found = bed.named(MODELS[turn % 2], pair, "unit")
        wanted = [bed.CAUSES[cause][1] for cause in pair]
        assert any(found[0] in codes for codes in wanted), (pair, found)
        both += all(set(found) & codes for codes in wanted)
    assert both >= 6


@pytest.mark.parametrize("model", MODELS)
def test_crowded_slots_are_named_beside_what_would_explain_empty_stages_too(bed, model):
    found = bed.named(model, ("fill: crowded slots", "throttled"), "unit")
    assert {"GATE-FILL", "GATE-THROTTLE"} <= set(found)
    assert "GATE-FILL" not in bed.named(model, ("throttled",), "unit")


@pytest.mark.parametrize("model", MODELS)
def test_a_server_without_a_fault_is_not_accused_with_async_depth_0_either(bed, model):
    depths = set()
    for turn in range(4):
        server, load = bed.healthy(model, random.Random(f"unit/{turn}"))
        depths.add(server.depth)
        assert [item["code"] for item in bed.Bed(server, load).run()["diagnosis"]] == [], server
    assert 0 in depths


def test_perfect_flags_do_not_hide_a_bad_fill_and_evidence_names_cards_and_numbers(bed):
    """Nothing in the resolved arguments differs between the two: the evidence alone does."""
    server, load = bed.healthy("cohorts", random.Random("unit"))
    result = bed.Bed(bed.replace(server, cohorted=True), load).run()
    found = result["diagnosis"][0]
    assert (found["code"], found["evidence"]["micro_batches"]) == ("GATE-FILL", pytest.approx(1, abs=0.1))
    assert found["evidence"]["micro_batch_size"] == pytest.approx(found["evidence"]["concurrency"], rel=0.1)
    assert result["engine"]["resolved"] == bed.Bed(server, load).run()["engine"]["resolved"]
    slow = bed.Bed(bed.replace(server, slow_stages={5: 4.0}), load).run()["diagnosis"][0]
    assert (slow["code"], slow["evidence"]["uuids"]) == ("GATE-SLOW-STAGE", ["GPU-5"])
    assert "stage 5 (card 5, GPU-5)" in slow["message"]
