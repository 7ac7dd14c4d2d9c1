"""The static tier against what releases of every shape were seen to do; a sample here, all of it in `make oracle`."""

from __future__ import annotations

import random

import bars
import pytest
import run as oracle
import score as scoring
from static_tier import read_table

SAMPLE = 12
BLIND = 4
# Bars that are not reached yet, by words of bars.py; never one about something wrong. To be emptied.
BELOW: dict[str, tuple[str, ...]] = {
    "0.4.10.post2": ("verdict ok or fatal",),
    "0.5.5.post3": ("changed fields exact", "key settings exact", "twins wrong or undecided"),
}

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module", params=oracle.recorded_releases())
def release(request, wheel):
    version = request.param
    cases, table = oracle.read_recording(version)
    return version, wheel(version), cases, table


def _sample(cases, count, seed):
    """The same few cases every time; with a twin its other half."""
    names = {case["id"] for case in random.Random(seed).sample(cases, count)}
    names |= {case["twin"] for case in cases if case["id"] in names and "twin" in case}
    return [case for case in cases if case["id"] in names]


def test_at_least_ten_releases_are_recorded():
    assert len(oracle.recorded_releases()) >= 10


def test_a_sample_of_the_recordings_is_told_right(release):
    version, wheel, cases, _table = release
    resolve = scoring.resolver({version: wheel})

    result = scoring.score(_sample(cases, SAMPLE, version), resolve)
    blind = scoring.score(_sample(cases, BLIND, f"blind {version}"), resolve, informed=False)

    missed = [*bars.short_of(result), *bars.short_uninformed(blind)]
    assert [line for line in missed if not any(words in line for words in BELOW.get(version, ()))] == []


def test_the_flag_table_is_the_real_parsers(release):
    _version, wheel, _cases, table = release

    found = bars.score_table(read_table(wheel), table)

    assert (found.missing, found.surplus) == ((), ())
    assert len(found.wrong_choices) <= (1 - bars.CHOICES) * found.choices, found.wrong_choices


def test_recordings_hold_every_kind_of_case(release):
    version, _wheel, cases, _table = release
    kinds = {case["id"].partition("-")[0] for case in cases}

    assert len(cases) >= 36 and {case["sglang_version"] for case in cases} == {version}
    assert {"single", "rule_pair", "mixture", "story", "illegal", "prefix"} <= kinds
    assert {case["outcome"] for case in cases} == {"ok", "fatal", "parse_error"}
