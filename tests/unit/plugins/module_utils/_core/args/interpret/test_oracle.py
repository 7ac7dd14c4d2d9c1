# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The static resolution against executed cases: floors that may only rise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[7]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import score as oracle  # noqa: E402

# kimi_k25.json and corners.json were executed after the interpreter was written; nothing in them was tuned to.
CASES = [case for name in ("cases", "kimi_k25", "corners") for case in oracle.load(oracle.FIXTURES / f"{name}.json")]
PAIRS = oracle.load(oracle.FIXTURES / "pairs.json")
VERSIONS = ("0.5.12", "0.5.23")

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def run(unpacked):
    return oracle.resolver({version: unpacked(version) for version in VERSIONS})


@pytest.mark.parametrize("version", VERSIONS)
def test_executed_cases_are_told_field_by_field(run, version):
    result = oracle.score([case for case in CASES if case["sglang_version"] == version], run)

    assert result.cases == len([case for case in CASES if case["sglang_version"] == version]) > 0
    assert result.false_fatal == []
    assert result.outcome_wrong == []
    assert result.outcome_unknown == []
    assert result.key_wrong == []
    assert result.key_undecided == []
    assert result.wrong == []
    assert result.false_change == []
    assert result.right >= 0.99 * result.changed


def _decode(result):
    if "cuda_graph_config.decode.backend" in result.effective:
        return result.effective["cuda_graph_config.decode.backend"]
    return "disabled" if result.effective["disable_cuda_graph"] else "enabled"


@pytest.mark.parametrize(
    "pair", PAIRS, ids=[f"{pair['sglang_version']} {' '.join(pair['with_flag']['argv'][2:])}" for pair in PAIRS]
)
def test_a_flag_is_vestigial_exactly_where_execution_says_so(run, pair):
    got = {}
    for side in ("with_flag", "without_flag"):
        one = pair[side]
        result = run(
            pair["sglang_version"], list(one["argv"]), oracle.facts_of(one["hardware"]), oracle.model_of(one["model_config"])
        )
        got[side] = _decode(result)

    assert got == {"with_flag": pair["effective_with"], "without_flag": pair["effective_without"]}
    assert (got["without_flag"] == got["with_flag"] == "disabled") == pair["forced_by_others"]


def test_a_default_that_hangs_on_the_host_counts_as_changed_where_none_of_them_is_left(unpacked):
    """Executed on 0.5.16: "breakable" becomes "disabled"; without facts the default is open, the change is not."""
    argv = ["--model-path", "@models/llama", "--disable-prefill-cuda-graph"]
    result = oracle.resolver({"0.5.16": unpacked("0.5.16")})("0.5.16", argv, {}, None)

    change = result.changed["cuda_graph_config.prefill.backend"]
    assert (change["from"], change["to"]) == (None, "disabled")
    assert result.effective["cuda_graph_config.prefill.backend"] == "disabled"


def test_a_check_stays_within_a_second_of_processor_time(run):
    import time

    model = oracle.model_of("kimi_k25")
    argv = ["--model-path", "@models/kimi_k25", "--pp-size", "8", "--disable-cuda-graph"]
    run("0.5.23", argv, oracle.facts_of("8xRTXPRO6000"), model)
    start = time.process_time()
    for facts in (oracle.facts_of("8xRTXPRO6000"), {"sm": 120, "platform": "cuda"}, {}):
        run("0.5.23", argv, facts, model)

    assert (time.process_time() - start) / 3 < 1.0
