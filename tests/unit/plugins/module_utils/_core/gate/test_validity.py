# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each reason to refuse a server or to doubt a figure, by itself, beside the load that gives no reason."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.probes import over
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.validity import (
    cache_limit,
    check_bound,
    check_cache,
    check_client,
    check_counters,
    check_load,
    check_passes,
)

from .traces import load_of
from .traces import trace as trace_of

PLAN = GatePlan.from_dict({"points": [{"concurrency": 1}], "input_tokens": 8, "output_tokens": 4})


def checked(change=lambda trace: None, *, stream_interval=None):
    load = load_of([[(10, [1, 1, 1])] * 3])
    for trace in load.window:
        change(trace)
    return check_load(load, PLAN, stream_interval=stream_interval)


def altered(**values):
    def change(trace):
        for name, value in values.items():
            setattr(trace, name, value)

    return change


def test_a_healthy_load_gives_no_reason():
    validity = checked()
    assert (validity.wrong, validity.doubtful) == ([], [])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param(
            {"output_tokens": 60000, "events": 60000}, "max_tokens 4 was ignored: 60000 tokens came in 60000 chunks", id="R15"
        ),
        pytest.param({"output_tokens": 12}, "usage says 12 tokens where max_tokens was 4 and 4 chunks", id="R15-count"),
        pytest.param({"distinct": {"!"}, "characters": 400, "text": "!!!!"}, "garbage", id="R55"),
        pytest.param({"distinct": set("!?.,; "), "characters": 400, "text": "!?.,"}, "garbage", id="R55 marks without a letter"),
        pytest.param({"distinct": set("ha "), "characters": 400, "text": "ha ha"}, "garbage", id="R55 hardly any different ones"),
        pytest.param({"distinct": {" "}, "characters": 1, "text": " "}, "garbage", id="R55 white space"),
        pytest.param({"status": "failed", "error": "HTTP 500"}, "3 of 3 requests failed, the first: HTTP 500", id="failed"),
    ],
)
def test_what_refuses_the_server(values, reason):
    validity = checked(altered(**values))
    assert any(reason in line for line in validity.wrong)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"output_tokens": 3, "events": 3}, "ended before 4 tokens"),
        ({"output_tokens": None}, "without usage"),
        ({"events": 9}, "9 chunks with text arrived"),
        ({"events": 1}, "cannot be confirmed"),
        ({"input_tokens": 9}, "prompts held 9 tokens, 8 were planned"),
        ({"input_tokens": None}, "does not say how long the prompts were"),
    ],
)
def test_what_casts_doubt_on_the_figure(values, reason):
    validity = checked(altered(**values))
    assert validity.wrong == []
    assert any(reason in line for line in validity.doubtful)


@pytest.mark.parametrize(("garbage", "wrong", "doubtful"), [(0, 0, 0), (2, 0, 0), (3, 0, 1), (60, 0, 1), (90, 1, 0), (100, 1, 0)])
def test_garbage_now_and_then_is_no_pass_either_r55(garbage, wrong, doubtful):
    """R55: now and then an answer is "!!!!" alone. One or two may be what is said to a prompt without a meaning."""
    load = load_of([[(10, [1, 1, 1])] * 100])
    for trace in load.window[-garbage:] if garbage else ():
        altered(distinct={"!"}, characters=400, text="!!!!")(trace)
    validity = check_load(load, PLAN, stream_interval=None)
    assert (len(validity.wrong), len(validity.doubtful)) == (wrong, doubtful)
    assert all("such as '!!!!'" in reason for reason in validity.wrong + validity.doubtful)


@pytest.mark.parametrize(("usage", "chunks", "ignored"), [(4, 4, 0), (4, 5, 0), (5, 4, 1), (4, 9, 1), (None, 4, 0), (None, 9, 1)])
def test_a_limit_is_not_kept_whatever_usage_says_r15(usage, chunks, ignored):
    answer = trace_of(0, 10, [1] * (chunks - 1))
    answer.output_tokens = usage
    assert over(answer, 4) == ignored


def test_a_stated_stream_interval_explains_few_chunks():
    assert checked(altered(events=1), stream_interval=4).doubtful == []


@pytest.mark.parametrize(("eager", "wrong"), [(0, 0), (1, 0), (2, 1), (100, 1)])
def test_eager_share_r104(eager, wrong):
    passes = {"decode": {"graph": 100 - eager, "eager": eager}, "prefill": {"graph": 0, "eager": 9}}
    assert len(check_passes(passes, {"decode_graph_pass_ratio": 0.99}).wrong) == wrong


def test_passes_that_nobody_counted_are_doubt():
    for passes in (None, {"decode": {"graph": 0, "eager": 0}}):
        validity = check_passes(passes, {"decode_graph_pass_ratio": 0.99})
        assert (validity.wrong, len(validity.doubtful)) == ([], 1)


def test_cache_r77_bound_and_client():
    assert [bool(check_cache(ratio, cache_limit(PLAN, 0.0, None))) for ratio in (None, 0.0, 0.01, 0.011)] == [
        False,
        False,
        False,
        True,
    ]
    # Prompts that were made to differ are fresh where nobody tells; those sent as they are may be anything.
    assert [bool(check_cache(None, 0.01, fresh=fresh)) for fresh in (True, False)] == [False, True]
    assert [bool(check_bound(low, 50)) for low in (None, 49, 51)] == [False, False, True]
    assert check_bound(51, None) == []
    load = load_of([[(10, [1, 1, 1])] * 3])
    assert check_client({"client": 0.1}, load, 1.0) == []
    assert len(check_client({"client": 0.99}, load, 0.5)) == 2


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (None, None),
        (12, None),
        (11.8, None),
        (11, "usage says 12 tokens, but the engine itself counted 11"),
        (6, "the figure is too high"),
        (70, None),
        (120, "asked for 12 at most: other clients load the server"),
    ],
)
def test_the_engines_own_count_must_bear_out_usage(counted, said):
    reasons = check_counters(counted, load_of([[(10, [1, 1, 1])] * 3]), PLAN)
    assert reasons == [] if said is None else said in reasons[0]


def test_requests_that_were_cut_may_be_counted_in_part():
    load = load_of([[(10, [1, 1, 1])] * 300])
    load.drained = load.window[:1] * 100
    assert check_counters(1200 + 400, load, PLAN) == check_counters(1200, load, PLAN) == []
    assert check_counters(1200 + 600, load, PLAN) != []
