# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""No label of the throughput chart is written over another or over a dot, whatever was measured."""

from __future__ import annotations

import re

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.chart_labels import _box, _meet
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.chart_throughput import Mark, throughput
from hypothesis import given
from hypothesis import strategies as st

TEXT = re.compile(r'<text class="(value|fine bad|fine)" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<')
FIGURE = st.one_of(st.none(), st.floats(20, 900))
MARKS = st.lists(
    st.builds(Mark, st.sampled_from([1, 4, 8, 16, 64]), FIGURE, limit=FIGURE, bound=FIGURE, serial=FIGURE),
    min_size=1,
    max_size=5,
    unique_by=lambda mark: mark.load,
)


def labels(marks):
    chart = throughput(marks, "requests in flight", "bound")
    return [(kind, words, _box(float(x), float(y), words, anchor)) for kind, x, y, anchor, words in TEXT.findall(chart)]


@given(MARKS)
def test_labels_keep_apart(marks):
    found = labels(marks)
    assert sum(kind == "value" for kind, *dummy in found) == sum(mark.value is not None for mark in marks)
    for place, (kind, words, box) in enumerate(found):
        for other, more, taken in found[:place]:
            # What was measured is told in any case; all other labels give way.
            assert kind == other == "value" or not _meet(box, taken), (words, more)


def test_a_wide_interval_does_not_flatten_the_chart():
    """57.9 tok/s, 0.4 … 115.3, after a few arrivals: the axis once went down to 0.3."""
    chart = throughput([Mark(0.2, 57.9, 0.4, 115.3, bound=51), Mark(0.5, 112.2, bound=128)], "requests per second", "asked")
    axis = [float(words) for words in re.findall(r'text-anchor="end">([\d.]+)<', chart)]
    assert min(axis) >= 20
    assert ">0.2<" in chart


def test_the_case_that_was_seen():
    """95.5 tok/s measured just below the bound of one micro-batch, 116."""
    marks = [Mark(8, 95.5, bound=388, serial=116), Mark(16, 129.8, limit=148.5, bound=572, serial=138)]
    assert {words for dummy, words, box in labels(marks)} >= {"95.5", "129.8", "148.5", "388", "572"}
