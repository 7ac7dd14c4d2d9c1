# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Uneven time is noticed; a clock that is slewed, and a system without a boot clock, are not accused."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.clocks import ClockWatch, boot_ns

S = 1_000_000_000


def doubts(looks):
    """Each look is (monotonic, wall, since boot) in seconds."""
    state = iter(looks)
    now = {}
    watch = ClockWatch(
        monotonic_ns=lambda: round(now["at"][0] * S),
        wall_ns=lambda: round(now["at"][1] * S),
        since_boot_ns=lambda: None if now["at"][2] is None else round(now["at"][2] * S),
    )
    for look in state:
        now["at"] = look
        watch.look()
    return watch.doubts()


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        pytest.param([(0, 100, 0), (0.2, 100.2, 0.2), (0.4, 130.4, 0.4)], "set by +30.0 s", id="set forward"),
        pytest.param([(0, 100, 0), (0.2, 100.2, 0.2), (0.4, 99.4, 0.4)], "set by -1.0 s", id="set back"),
        pytest.param([(0, 100, 0), (0.2, 160.2, 60.2)], "suspended for 60.0 s", id="suspended"),
        pytest.param([(0, 100, 0), (0.2, 100.2, 0.2), (5.4, 105.4, 5.4)], "not run for 5.2 s", id="stopped"),
    ],
)
def test_what_was_uneven_is_said_and_nothing_else(looks, said):
    (sentence,) = doubts(looks)
    assert said in sentence


def test_even_time_gives_no_doubt():
    slewed = [(0.2 * i, 100 + 0.2 * i * 1.0005, None) for i in range(1000)]
    assert doubts(slewed) == doubts([(0, 5, 0)]) == doubts([]) == []
    before = boot_ns()
    assert before is None or boot_ns() >= before
