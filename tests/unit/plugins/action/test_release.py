# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action release: what is followed, what is printed for whom, and what the task ends with."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.action import release

from .fake import ONE, TWO, Screen, action

SPEC = {"spec": {"instance": "kimi"}}


@pytest.fixture
def attempt(tmp_path):
    """Write the records of an attempt as the host does; return the answer of the module that submitted it."""

    def write(lines=("closing the front", "gate: pass"), name="one", **ended):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "attempt.json").write_text(json.dumps({"attempt": name, **ended}, indent=1) + "\n")
        (folder / "progress.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in lines) + '{"text": "cut of')
        return {
            "action": "replace",
            "outcome": "submitted",
            "attempt": name,
            "message": "replacing a by b",
            "forecast_text": "forecast: at most 6 min",
            "attempt_file": str(folder / "attempt.json"),
            "progress_file": str(folder / "progress.jsonl"),
        }

    return write


@pytest.mark.parametrize("crlf", [False, True])
def test_progress_is_shown_line_by_line_and_the_end_is_the_result(attempt, monkeypatch, crlf):
    screen = Screen(monkeypatch)
    submitted = attempt(("zwölf", "gate: pass"), outcome="promoted", message="b is promoted", reasons=[])
    result = action(release.ActionModule, SPEC, [submitted], crlf=crlf).run(task_vars=ONE)
    assert screen.lines[:2] == ["  replacing a by b", "  forecast: at most 6 min"]
    assert "also when this play is interrupted" in screen.lines[2]
    assert screen.lines[3:] == ["  zwölf", "  gate: pass"], "only whole lines"
    assert (result["outcome"], result["message"], result.get("failed")) == ("promoted", "b is promoted", None)


def test_with_several_hosts_each_line_names_its_own(attempt, monkeypatch):
    screen = Screen(monkeypatch)
    action(release.ActionModule, SPEC, [attempt(outcome="promoted")]).run(task_vars=TWO)
    assert screen.lines and all(line.startswith("  a: ") for line in screen.lines)


def test_a_bad_end_fails_the_task_with_one_message(attempt, monkeypatch):
    Screen(monkeypatch)
    gate = {"verdict": "fail", "folder": "/gates/1", "diagnosis": []}
    submitted = attempt(
        outcome="rolled_back", message="went back to a", reasons=["too slow"], failed_in="gate", gate=gate, id="b"
    )
    result = action(release.ActionModule, SPEC, [submitted]).run(task_vars=ONE)
    assert result["failed"] is True
    assert result["msg"].splitlines()[:3] == ["went back to a", "  where: release b, phase gate", "  why:   too slow"]
    assert (result["verdict"], result["report_folder"]) == ("fail", "/gates/1")


def test_an_attempt_left_unfinished_is_ended_and_told_before_the_new_one(attempt, monkeypatch):
    screen = Screen(monkeypatch)
    old = attempt(("going back",), name="old", outcome="rolled_back", message="went back to a")
    plugin = action(
        release.ActionModule,
        SPEC,
        [{**old, "action": "recover", "message": "finishing it first", "forecast_text": None}, attempt(outcome="promoted")],
    )
    assert plugin.run(task_vars=ONE)["outcome"] == "promoted"
    assert screen.lines[:3] == ["  finishing it first", "  going back", "  the attempt before ended: went back to a"]
    assert len(plugin.asked) == 2


def test_how_the_last_attempt_failed_is_told_by_the_next_run(monkeypatch):
    screen = Screen(monkeypatch)
    last = {"attempt": "x", "kind": "replace", "id": "b", "outcome": "rolled_back", "message": "went back", "reasons": ["slow"]}
    action(release.ActionModule, SPEC, [{"action": "none", "message": "serves", "last_attempt": last}]).run(task_vars=ONE)
    assert screen.lines == ["  last attempt x (replace of b): rolled_back: went back", "    slow"]


def test_another_attempt_in_its_place_ends_the_watch(attempt, monkeypatch):
    Screen(monkeypatch)
    submitted = {**attempt(outcome="promoted"), "attempt": "mine"}
    result = action(release.ActionModule, SPEC, [submitted]).run(task_vars=ONE)
    assert (result["outcome"], result["failed"]) == ("superseded", True)


def test_a_silent_host_is_asked_for_its_journal_once_and_given_up_in_the_end(attempt, monkeypatch):
    screen = Screen(monkeypatch)
    clock = iter(range(0, 100_000, 40))
    monkeypatch.setattr(release.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(release.time, "sleep", lambda seconds: None)
    result = action(release.ActionModule, SPEC, [attempt()]).run(task_vars=ONE)
    assert (result["outcome"], result["failed"]) == ("lost", True)
    assert sum("nothing new for 60 s; the journal on the host ends with" in line for line in screen.lines) == 1


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "refused"}, {"action": "none", "message": "serves"}])
def test_a_refusal_and_nothing_to_do_are_not_followed(answer, monkeypatch):
    Screen(monkeypatch)
    assert action(release.ActionModule, SPEC, [dict(answer)]).run(task_vars=ONE) == answer


def test_check_mode_submits_once_and_follows_nothing(attempt, monkeypatch):
    Screen(monkeypatch)
    predicted = {"action": "recover", "message": "finishing it first", "changed": True}
    plugin = action(release.ActionModule, SPEC, [predicted], check_mode=True)
    assert plugin.run(task_vars=ONE) == predicted


def test_the_owner_names_this_play_unless_the_task_does(monkeypatch):
    Screen(monkeypatch)
    plugin = action(release.ActionModule, SPEC, [{"action": "none"}])
    plugin.run(task_vars=ONE)
    assert plugin.asked[0]["owner"].startswith("ansible, pid ")
    plugin = action(release.ActionModule, {**SPEC, "owner": "me"}, [{"action": "none"}])
    plugin.run(task_vars=ONE)
    assert plugin.asked[0]["owner"] == "me"
