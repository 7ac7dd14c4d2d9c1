# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Law: learning a fact changes no decided field, only undecided ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[7]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import score as oracle  # noqa: E402

VERSIONS = ("0.5.12", "0.5.23")
LINES = (
    [],
    ["--disable-cuda-graph"],
    ["--attention-backend", "triton", "--pp-async-batch-depth", "8"],
    ["--enable-mis", "--attention-backend", "flashinfer"],
    ["--tp-size", "2", "--enable-mixed-chunk"],
)
MODELS = ("kimi_k25", "llama", "deepseek_v3", "qwen3_moe")

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def run(unpacked):
    return oracle.resolver({version: unpacked(version) for version in VERSIONS})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(VERSIONS),
    st.sampled_from(LINES),
    st.sampled_from(MODELS),
    st.sampled_from(sorted(oracle.HARDWARE)),
    st.sets(st.sampled_from(["platform", "gpu_name", "gpu_count", "sm", "gpu_memory_mib", "model"])),
)
def test_learning_a_fact_changes_no_decided_field(run, version, line, model, hardware, hidden):
    facts, config = oracle.facts_of(hardware), oracle.model_of(model)
    argv = ["--model-path", "/m", "--pp-size", "8", *line]
    less = run(
        version, argv, {name: value for name, value in facts.items() if name not in hidden}, None if "model" in hidden else config
    )
    more = run(version, argv, facts, config)

    if less.outcome != "unknown":
        assert more.outcome == less.outcome
    if more.outcome == "ok":
        for name, value in less.effective.items():
            if name in more.effective:
                assert more.effective[name] == value, name
        assert not {one["field"] for one in more.undecided} - {one["field"] for one in less.undecided}
