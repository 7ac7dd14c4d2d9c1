"""The demo's judgement: no statements hold nothing, a wrong figure is seen, and the words tell what was found."""

from __future__ import annotations

import pytest
from inferops_demo.judge import Judgement, mean_power_w
from inferops_demo.play import RECAP, Played


def result(tokens_per_s):
    return {"points": [{"concurrency": 1, "output_tokens_per_s": tokens_per_s}]}


@pytest.mark.parametrize(
    ("value", "holds"), [(35.6, True), (36.6, True), (34.6, True), (36.7, False), (34.5, False), (0.0, False), (None, False)]
)
def test_a_figure_is_within_three_per_cent_or_not(value, holds):
    judged = Judgement("act")
    judged.figure(result(value), 1, 35.6)
    assert judged.holds is holds


def test_no_result_and_no_point_never_hold():
    for nothing in (None, {}, {"points": []}):
        judged = Judgement("act")
        judged.figure(nothing, 1, 35.6)
        assert not judged.holds


def test_an_act_without_statements_does_not_hold():
    assert not Judgement("act").holds


def test_one_false_statement_is_enough_and_is_shown_with_what_was_found():
    judged = Judgement("act")
    judged.expect(True, "fine")
    judged.expect(False, "promoted", None)
    assert not judged.holds
    assert "BAD promoted; found: None" in judged.text()


def test_no_power_reading_is_none_and_zero_watt_is_a_reading():
    assert mean_power_w({"gpus": []}) is None
    assert mean_power_w({"gpus": [{"power_w": {"mean": 0.0}}, {"power_w": {"mean": None}}]}) == 0.0


def test_the_recap_of_one_host_is_read():
    text = "demo  : ok=26   changed=3    unreachable=0    failed=1    skipped=3\nother : ok=1 changed=0 unreachable=0 failed=0\n"
    assert Played(1, text, 1.0, 0.0).recap("demo") == {"ok": 26, "changed": 3, "unreachable": 0, "failed": 1}
    assert Played(1, text, 1.0, 0.0).recap("nobody") is None
    assert RECAP.findall("ok=1 changed=0") == []
