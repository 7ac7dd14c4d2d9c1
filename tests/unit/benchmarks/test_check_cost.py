"""The arithmetic of benchmarks/check.py: medians, ratios, and how far two answers agree. No timing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("benchmark_check", Path(__file__).resolve().parents[3] / "benchmarks" / "check.py")
assert _spec is not None and _spec.loader is not None
check = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = check
_spec.loader.exec_module(check)


def test_check_tells_what_the_release_makes_otherwise():
    ours = {"outcome": "ok", "changed": {"a": {"from": 1, "to": 2}, "b": {"from": 1, "to": 3}}}
    executed = {"outcome": "ok", "changed": {"a": [1, 2], "b": [1, 4], "c": [1, 5]}}
    said = check.agreement(ours, executed)
    assert "1 of the release's 3" in said and said.endswith("NOT THE SAME: b")
    assert "NOT THE SAME" in check.agreement({**ours, "outcome": "fatal"}, executed)
    assert "NOT THE SAME" not in check.agreement(ours, {"outcome": "ok", "changed": {"a": [1, 2]}})


def test_check_takes_each_median_by_itself():
    costs = [check.Cost(1.0, 9.0, 5.0), check.Cost(2.0, 7.0, 6.0), check.Cost(3.0, 8.0, 4.0)]
    assert check.middle(costs) == check.Cost(2.0, 8.0, 5.0)
    assert check.ratio(check.Cost(4.0, 2.0, 30.0), check.Cost(2.0, 8.0, 10.0)) == check.Cost(2.0, 0.25, 3.0)
