"""A second run changes nothing: neither files nor the process."""

import json
import re


def test_no_task_changed(kept):
    text = (kept / "again.log").read_text()
    assert re.search(r"story-idle-rerun\s+: ok=\d+\s+changed=0\s", text)


def test_units_and_process_are_the_same(kept, view):
    before = json.loads((kept / "before.json").read_text())
    kept_keys = ("text", "mtime_ns", "MainPID", "NRestarts", "ActiveEnterTimestampMonotonic")
    assert view.units.keys() == before["units"].keys() != set()
    for name, unit in before["units"].items():
        assert {key: unit.get(key) for key in kept_keys} == {key: view.units[name].get(key) for key in kept_keys}, name


def test_the_gate_was_not_repeated(kept, view):
    assert list(view.gates) == list(json.loads((kept / "before.json").read_text())["gates"])
