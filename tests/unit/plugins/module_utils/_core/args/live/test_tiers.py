"""Two tiers, one report: SGLang's own answer counts, a disagreement is a finding, no answer blocks nothing that was read."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Interpreter
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main

ARGV = ["--model-path", "m", "--pp-size", "2"]
NOBODY = Interpreter("/nowhere/bin/python")


def codes(report):
    return [finding.code for finding in report.findings]


def of(report, code):
    return next(finding for finding in report.findings if finding.code == code)


@pytest.mark.parametrize("name", ["setattr", "declare"])
def test_both_tiers_agree_and_the_answer_is_the_live_one(release, name):
    one = release(name)
    static = check(ARGV, source_root=one.root)
    live = check(ARGV, source_root=one.root, live=one.interpreter())
    assert (static.tier, live.tier) == ("static", "live")
    assert (static.outcome, live.outcome) == ("ok", "ok")
    assert "SGA701" not in codes(live)
    overlap = live.changed["disable_overlap_schedule"]
    assert overlap["to"] is True
    assert overlap["source"] == static.changed["disable_overlap_schedule"]["source"]
    assert "pp_size > 1" in overlap["guard"]
    assert overlap["because"] == static.changed["disable_overlap_schedule"]["because"] == ["--pp-size"]
    assert live.undecided == []


def test_what_only_sglang_itself_can_know_counts_and_is_a_finding(release):
    one = release("declare")
    report = check(ARGV, source_root=one.root, live=one.interpreter(FAKE_PLUGIN="1"))
    assert report.effective["attention_backend"] == "triton"
    found = of(report, "SGA701")
    assert (found.level, found.source) == ("info", one.line("srt/plugins.py", "set: attention_backend"))
    assert "attention_backend: read flashinfer, is triton" in found.message


def test_another_outcome_is_a_finding_and_the_live_one_counts(release, tmp_path):
    """The interpreter has the release with a refusal that the source given does not have: somebody edited the installation."""
    one = release("declare")
    edited = tmp_path / "sglang"
    for path in (one.root / "sglang").rglob("*.py"):
        target = edited / path.relative_to(one.root / "sglang")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8").replace("self.pp_size < 5", "self.pp_size < 2, 'one stage only'"))
    report = check(ARGV, source_root=one.root, live=one.interpreter(path=tmp_path))
    assert (report.tier, report.outcome, report.message) == ("live", "fatal", "one stage only")
    assert report.exit_status == 1
    assert {"SGA201", "SGA701"} <= set(codes(report))


def test_where_sglang_cannot_be_asked_the_source_answers_and_nothing_blocks(release):
    report = check(ARGV, source_root=release("setattr").root, live=NOBODY)
    assert (report.tier, report.outcome) == ("static", "ok")
    found = of(report, "SGA702")
    assert found.level == "info"
    assert "/nowhere/bin/python does not start" in found.message
    assert "SGA702" not in codes(check(ARGV, source_root=release("setattr").root))


def test_another_release_in_the_interpreter_does_not_count(release):
    one, other = release("setattr"), release("declare")
    report = check(ARGV, source_root=one.root, live=other.interpreter())
    assert report.tier == "static"
    assert "the interpreter has SGLang 9.0.2, the source that was read is 9.0.1" in of(report, "SGA702").message


@pytest.fixture
def unreadable(release, tmp_path):
    """A release whose arguments have a shape nobody has seen: the parser is filled behind our back."""
    one = release("setattr")
    for path in (one.root / "sglang").rglob("*.py"):
        target = tmp_path / "sglang" / path.relative_to(one.root / "sglang")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        target.write_text(
            text.replace("def add_cli_args(", "def fill(").replace(
                "ServerArgs.add_cli_args(", "getattr(ServerArgs, 'fi' + 'll')("
            )
        )
    return tmp_path


def test_live_alone_answers_for_a_shape_nobody_reads(release, unreadable):
    report = check(ARGV, source_root=unreadable, live=release("setattr").interpreter(path=unreadable), expect={"pp_size": 2})
    assert (report.tier, report.source_style, report.outcome, report.exit_status) == ("live", "unreadable", "ok", 0)
    assert report.changed["disable_overlap_schedule"]["guard"] == "self.pp_size > 1"
    assert {"SGA703", "SGA210", "SGA502"} <= set(codes(report))


def test_a_refusal_of_a_shape_nobody_reads_blocks(release, unreadable):
    ask = release("setattr").interpreter(path=unreadable)
    report = check(["--model-path", "m", "--pp-size", "8"], source_root=unreadable, live=ask)
    assert (report.outcome, report.exit_status) == ("fatal", 1)
    assert "SGA201" in codes(report)
    refused = check(["--model-path", "m", "--nope"], source_root=unreadable, live=ask)
    assert (refused.outcome, refused.exit_status) == ("parse_error", 1)


def test_neither_read_nor_asked_is_unknown(unreadable):
    report = check(ARGV, source_root=unreadable, live=NOBODY)
    assert (report.outcome, report.exit_status) == ("unknown", 3)
    assert of(report, "SGA702").level == "unknown"


def test_a_parser_that_refuses_is_told_like_the_static_tier_tells_it(release):
    one = release("setattr")
    report = check(["--model-path", "m", "--pp-siz", "x"], source_root=one.root, live=one.interpreter())
    assert (report.tier, report.outcome) == ("live", "parse_error")
    assert codes(report) == ["SGA103"]


def test_the_command_line_asks(release, capsys, monkeypatch):
    one = release("setattr")
    words = ["check", "--source", str(one.root), "--live", sys.executable, "--env", f"PYTHONPATH={one.root}", "--", *ARGV]
    assert main(words) == 0
    assert "SGLang 9.0.1 (live): clean, SGLang accepts it; " in capsys.readouterr().out
