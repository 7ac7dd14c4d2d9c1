# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What real runs write is what the published schema of a result describes, whatever became of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate import run
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.folder import ResultFolder
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import Nvml
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan

from .fake_pynvml import FakePynvml
from .paced_server import Pace, serving
from .schemas import load, of_result, problems

QUICK = {"input_tokens": 16, "output_tokens": 12, "min_seconds_per_point": 0.2, "max_seconds_per_point": 4, "stall_timeout_s": 1}
PASSES = 'sglang:cuda_graph_passes_total{pp_rank="0",mode="decode_cuda_graph"} 9\n'
INFO = {"version": "0.5.23", "pp_size": 2, "tp_size": 1, "tool_call_parser": "kimi_k2", "api_key": "x"}
MODEL = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "bfloat16",
}
CONTEXT = GateContext(
    model_config=MODEL,
    bandwidth_gb_s=1600,
    about={"release": {"id": "abc", "instance": "kimi"}, "asked": {"pp_size": 2}, "check": {"outcome": "ok", "findings": []}},
)


def gate(
    pace: Pace, folder: Path, *points: dict[str, Any], context: GateContext | None = CONTEXT, **extra: Any
) -> dict[str, Any]:
    options = {key: extra.pop(key) for key in ("correctness", "max_seconds_per_point") if key in extra}
    with serving(pace) as url:
        plan = GatePlan.from_dict({**QUICK, "points": list(points) or [{"concurrency": 1}], **options})
        return run.run_gate(url, plan, folder, open_nvml=lambda: Nvml(FakePynvml()), context=context, **extra)


LINES = {part: of_result(part) for part in ("sample_line", "watch_line", "engine_line", "progress_line")}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def fits(folder: Path) -> dict[str, Any]:
    """Assert that everything in a folder is described, and return the result that lies there."""
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert problems(of_result(), result) == []
    for line in lines(folder / "samples.jsonl"):
        part = "sample_line" if "point" in line else "engine_line" if "engine" in line else "watch_line"
        assert problems(LINES[part], line) == [], part
    for line in lines(folder / "progress.jsonl"):
        assert problems(LINES["progress_line"], line) == []
    return result


def pace(**more: Any) -> Pace:
    return Pace(ttft_s=0.02, itl_s=0.002, server_info=INFO, metrics=PASSES, **more)


LIMITS = {"min_output_tokens_per_s": 1, "min_goodput_ratio": 0.1, "max_ttft_p50_ms": 4000, "max_itl_p99_ms": 4000}


def test_pass_with_cards_bound_and_answers(tmp_path):
    asked = {"tool_calls": False, "graded": {"items": 4}, "long_context": {"input_tokens": 400}}
    points = ({"concurrency": 2, **LIMITS}, {"concurrency": 1})
    gate(pace(), tmp_path / "first", points[0], correctness={"tool_calls": False})
    first = fits(tmp_path / "first")
    assert first["verdict"] == "pass"
    assert first["points"][0]["bound_tokens_per_s"]
    assert first["points"][0]["fillings"]["serial_tokens_per_s"]
    assert first["gpus"][0]["stage"] == 0
    # The words of this little server are no answers: its set fails, which is written down as well.
    gate(pace(), tmp_path / "second", *points, correctness=asked)
    second = fits(tmp_path / "second")
    assert second["correctness"]["graded"]["wrong"]
    assert "long_context" in second["correctness"]


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_arrivals(arrivals, tmp_path):
    point = {"rate": 10, "arrivals": arrivals, "min_goodput_ratio": 0.1, "max_ttft_p50_ms": 4000}
    gate(pace(), tmp_path, point, correctness={"tool_calls": False}, max_seconds_per_point=3)
    result = fits(tmp_path)
    assert result["points"][0]["client"]["late_ms"]["n"] > 0
    assert {line.get("phase") for line in lines(tmp_path / "samples.jsonl")} >= {"warmup", "window"}


def test_fail(tmp_path):
    gate(pace(), tmp_path, {"concurrency": 1, "min_output_tokens_per_s": 9e8}, context=None)
    assert fits(tmp_path)["verdict"] == "fail"


def test_fail_of_answers_and_of_requests(tmp_path):
    calls = pace()
    gate(calls, tmp_path / "calls", {"concurrency": 1, **LIMITS}, correctness={"tool_calls": True})
    assert fits(tmp_path / "calls")["correctness"]["tool_calls"]["verdict"] == "fail"
    gate(pace(fail_after=14), tmp_path / "errors", {"concurrency": 2, **LIMITS}, correctness={"tool_calls": False})
    assert fits(tmp_path / "errors")["verdict"] == "fail"


def test_inconclusive_with_its_cause(tmp_path):
    gate(pace(cached_tokens=4), tmp_path, {"concurrency": 1, **LIMITS}, correctness={"tool_calls": False})
    result = fits(tmp_path)
    assert (result["verdict"], result["diagnosis"][0]["code"]) == ("inconclusive", "GATE-CACHED")


def test_warm_up_that_does_not_end(tmp_path):
    slow = Pace(ttft_s=0.25, itl_s=0.002)
    gate(slow, tmp_path, {"concurrency": 2, **LIMITS}, context=None, max_seconds_per_point=0.4)
    assert fits(tmp_path)["points"][0]["window_ns"] is None


def test_interrupted(tmp_path):
    told = []
    points = ({"concurrency": 2, "min_output_tokens_per_s": 300}, {"concurrency": 4, "max_e2e_p99_ms": 1000})
    gate(
        *(pace(), tmp_path, *points),
        should_stop=lambda: any("2/2" in line["text"] for line in told),
        on_progress=told.append,
        correctness={"tool_calls": False},
        context=None,
    )
    assert "interrupted" in " ".join(fits(tmp_path)["reasons"])


def test_while_it_runs(tmp_path, monkeypatch):
    """What a killed run leaves is a result like any other, never a pass and not finished."""
    kept = []
    write = ResultFolder.result

    def look(self, result):
        write(self, result)
        kept.append(fits(tmp_path))

    monkeypatch.setattr(ResultFolder, "result", look)
    gate(pace(), tmp_path, {"concurrency": 1, **LIMITS}, {"concurrency": 2}, correctness={"tool_calls": False})
    assert [result["finished"] for result in kept] == [False, False, False, True]
    assert [len(result["points"]) for result in kept] == [0, 1, 2, 2]
    assert {result["verdict"] for result in kept[:-1]} == {"inconclusive"}


def test_unwritten(tmp_path, monkeypatch):
    append = ResultFolder._append

    def full(self, name, line):
        append(self, name, line)
        if name == "samples.jsonl" and self.problem is None:
            with self._lock:
                self._failed(OSError(28, "No space left on device"))

    monkeypatch.setattr(ResultFolder, "_append", full)
    gate(pace(), tmp_path, {"concurrency": 1, **LIMITS}, correctness={"tool_calls": False})
    result = fits(tmp_path)
    assert (result["unwritten"], result["verdict"]) == ("No space left on device", "inconclusive")


def test_refused_before_any_load(tmp_path):
    with pytest.raises(InferopsError):
        gate(pace(), tmp_path, {"concurrency": 1, "min_output_tokens_per_s": 9e8})
    result = fits(tmp_path)
    assert (result["points"], result["verdict"], result["finished"]) == ([], "inconclusive", True)


def test_a_key_that_is_not_described_is_seen(tmp_path):
    """The guard itself: the closed form refuses more, less and other."""
    gate(pace(), tmp_path, {"concurrency": 1, **LIMITS}, correctness={"tool_calls": False})
    result, validator = fits(tmp_path), of_result()
    assert problems(validator, {**result, "more": 1})
    assert problems(validator, {**result, "plan": {**result["plan"], "more": 1}})
    assert problems(validator, {**result, "schema": 2})
    assert problems(validator, {key: value for key, value in result.items() if key != "unwritten"})
    point = {**result["points"][0], "ttft_ms": {"p50": "fast"}}
    assert problems(validator, {**result, "points": [point]})


def test_the_version_is_the_writers():
    assert load("gate-result.schema.json")["properties"]["schema"]["const"] == run.SCHEMA
