# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What telemetry calls busy is called shared only when a timed copy is slow, free when it is fast, else unknown."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.context import GateContext
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.gpu import SLOW_EVERY, Cards
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import Nvml
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.run import run_gate
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.sharing import SharedCards, judge
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.watch import Watch

from .fake_pynvml import FakePynvml
from .paced_server import Pace, serving
from .test_run import QUICK, said

OTHER = 4242424
ALWAYS = (0, 1 << 62)


class Copies:
    """Figures by UUID; several of one card come in turn, None: the copy cannot be made."""

    def __init__(self, **figures):
        self.figures = {
            name.replace("_", "-"): list(each) if isinstance(each, tuple) else [each] for name, each in figures.items()
        }
        self.asked = []

    def __call__(self, uuids):
        self.asked.append(list(uuids))
        now = {uuid: turns.pop(0) if len(turns) > 1 else turns[0] for uuid, turns in self.figures.items() if uuid in uuids}
        problems = [f"bandwidth of card {uuid} cannot be measured: only 500 MiB are free on the card" for uuid in uuids]
        known = {uuid: value for uuid, value in now.items() if value is not None}
        return {"gb_s": known, "problems": [text for text, uuid in zip(problems, uuids, strict=True) if uuid not in known]}


class NoHost:
    def read(self):
        return {}


def looked(library, copies, context=None, *, loads=()):
    """Look before the load, then after each of ``loads`` (what happens during it); return the cards, notes and doubts."""
    watched, notes, doubts = Cards(lambda: Nvml(library)), [], []
    watch = Watch(watched, NoHost(), clock_ns=time.monotonic_ns, write=lambda line: None, period_s=0.002)
    shared = SharedCards(watched, notes.append, time_copies=copies, pause_s=0.0, settles_s=0.2)
    asyncio.run(shared.before(context or GateContext(tp_size=1, pp_size=2)))
    for happens in loads:
        for dummy in range(2):
            happens(library)
            seen = watched._turn
            while watched._turn < seen + 3 * SLOW_EVERY:
                time.sleep(0.002)
        asyncio.run(shared.after())
        doubts.append(shared.doubts())
    watch.close()
    return watched, notes, doubts or shared.doubts()


def comes(library):
    library.pids = [[100], [100, OTHER]]


def comes_and_goes(library):
    library.pids = [[100], [100] if OTHER in library.pids[1] else [100, OTHER]]


def nothing(library):
    pass


@pytest.mark.parametrize(
    ("copy", "known", "word"),
    [
        (1400.0, {"earlier": 1500.0}, "free"),
        (1200.0, {"earlier": 1500.0}, "shared"),
        (1400.0, {"neighbour": 1500.0}, "free"),
        (750.0, {"neighbour": 1500.0}, "shared"),
        # An edition's figure is a promise for reading: a copy reaches less.
        (1150.0, {"edition": 1600.0}, "free"),
        (800.0, {"edition": 1600.0}, "shared"),
        # What this very card did says more than others, and others of today more than a data sheet.
        (1000.0, {"earlier": 1050.0, "neighbour": 1500.0, "edition": 1792.0}, "free"),
        (1000.0, {"neighbour": 1500.0, "edition": 1200.0}, "shared"),
        (1500.0, {}, "unknown"),
        (None, {"earlier": 1500.0, "neighbour": 1500.0, "edition": 1600.0}, "unknown"),
    ],
)
def test_a_copy_is_judged_by_the_nearest_yardstick(copy, known, word):
    assert judge("process 7 of others is on it", copy, **known).word == word


def test_nothing_suspicious_is_not_timed():
    copies = Copies(GPU_0=1500.0, GPU_1=1500.0)
    assert looked(FakePynvml(), copies, loads=[nothing])[2] == [[]]
    assert copies.asked == []


def test_a_process_of_others_that_takes_nothing_is_said_and_no_doubt():
    watched, notes, doubts = looked(FakePynvml(), Copies(GPU_0=1500.0, GPU_1=1490.0), loads=[comes, nothing])
    assert doubts == [[], []]
    assert notes == [
        "card 1 (GPU-1, stage 1) is not shared: process 4242424 of others is on it, but a timed copy is at full speed "
        "(1490 of 1500 GB/s, measured on a like card beside it)"
    ]
    assert watched.summary([])[1]["sharing"]["verdict"] == "free"
    assert watched.summary([])[0]["sharing"] is None


def test_a_slow_copy_is_believed_the_second_time_and_leaves_both_points_beside_it_in_doubt():
    copies = Copies(GPU_0=1500.0, GPU_1=(700.0, 710.0, 1490.0))
    dummy, notes, doubts = looked(FakePynvml(), copies, loads=[comes, nothing, nothing])
    assert len(copies.asked) == 4
    assert doubts[0] == doubts[1] != doubts[2] == []
    assert doubts[0] == [
        "card 1 (GPU-1, stage 1) is shared: process 4242424 of others is on it, and a timed copy is slow (710 of 1500 GB/s, "
        "measured on a like card beside it)"
    ]
    assert len(notes) == 1


def test_the_last_work_of_the_server_itself_is_not_taken_for_another():
    assert looked(FakePynvml(), Copies(GPU_0=1500.0, GPU_1=(300.0, 1490.0)), loads=[comes])[2] == [[]]


def test_where_no_copy_can_be_made_it_is_unknown_and_never_passed_over():
    watched, dummy, doubts = looked(FakePynvml(), Copies(GPU_0=1500.0, GPU_1=None), loads=[comes])
    assert doubts[0] == [
        "whether card 1 (GPU-1, stage 1) is shared is unknown: process 4242424 of others is on it, and no copy could be timed: "
        "bandwidth of card GPU-1 cannot be measured: only 500 MiB are free on the card"
    ]
    assert watched.summary([])[1]["sharing"]["verdict"] == "unknown"


def test_one_that_has_left_again_leaves_its_point_in_doubt_and_not_the_next():
    doubts = looked(FakePynvml(), Copies(GPU_0=1500.0, GPU_1=1500.0), loads=[comes_and_goes, nothing])[2]
    assert doubts[1] == []
    assert doubts[0] == [
        "whether card 1 (GPU-1, stage 1) is shared is unknown: process 4242424 of others was on it, and a copy made now tells "
        "nothing of what it took then"
    ]


def test_a_card_that_is_busy_with_nothing_on_it_is_not_believed_nor_is_its_busy_share_evidence():
    """Telemetry can stay at busy after a kill; the diagnosis would call such a stage the slow one."""
    library = FakePynvml()
    library.busy = [0, 98]
    watched, notes, doubts = looked(library, Copies(GPU_0=1500.0, GPU_1=1500.0), loads=[nothing])
    assert doubts == [[]]
    assert "it is 98 % busy before any load, but a timed copy is at full speed" in notes[0]
    assert "its busy share" in notes[1] or "busy share of card 1" in notes[1]
    first, second = watched.summary([ALWAYS])
    assert (first["utilization_ratio"], second["utilization_ratio"]) == (0, None)
    assert watched.busy([ALWAYS]) == [0, None]


def test_a_card_that_is_busy_before_any_load_and_slow_is_shared():
    library = FakePynvml()
    library.busy = [0, 60]
    watched, dummy, doubts = looked(library, Copies(GPU_0=1500.0, GPU_1=800.0), loads=[nothing, nothing])
    assert ["is shared: it is 60 % busy before any load" in each[0] for each in doubts] == [True, True]
    assert watched.summary([ALWAYS])[1]["utilization_ratio"] == 0.6


def test_what_the_last_question_left_behind_is_waited_for():
    class Fading(FakePynvml):
        def nvmlDeviceGetUtilizationRates(self, index):
            self.busy = [100, 100] if time.monotonic() < self.until else [0, 0]
            return super().nvmlDeviceGetUtilizationRates(index)

    library, copies = Fading(), Copies()
    library.until = time.monotonic() + 0.1
    assert looked(library, copies)[2] == []
    assert copies.asked == []


def test_only_like_cards_of_which_nothing_is_suspected_are_yardsticks():
    library, copies = FakePynvml(4), Copies(GPU_0=900.0, GPU_1=900.0, GPU_2=1500.0, GPU_3=1800.0)
    library.names, library.busy = ["Card", "Card", "Card", "Other"], [50, 50, 0, 0]
    doubts = looked(library, copies)[2]
    assert copies.asked[0] == ["GPU-0", "GPU-1", "GPU-2"]
    assert [text.partition(" is shared")[0] for text in doubts] == ["card 0 (GPU-0)", "card 1 (GPU-1)"]


def test_what_was_measured_on_the_card_itself_spares_the_others():
    library, copies = FakePynvml(), Copies(GPU_0=1500.0, GPU_1=1100.0)
    library.busy = [0, 50]
    assert looked(library, copies, GateContext(bandwidths_gb_s=[1500.0, 1150.0]))[2] == []
    assert copies.asked == [["GPU-1"]]


@pytest.mark.parametrize(
    ("copies", "verdict", "reason"),
    [
        (Copies(GPU_0=1500.0, GPU_1=1500.0), "pass", None),
        (Copies(GPU_0=1500.0, GPU_1=600.0), "inconclusive", "card 1 (GPU-1) is shared"),
        (Copies(), "inconclusive", "whether card 1 (GPU-1) is shared is unknown"),
    ],
)
def test_the_verdict_of_a_gate_rests_on_the_copy(copies, verdict, reason, tmp_path):
    library = FakePynvml()
    library.busy = [0, 98]
    with serving(Pace()) as url:
        plan = GatePlan.from_dict({**QUICK, "points": [{"concurrency": 2, "min_output_tokens_per_s": 1}]})
        result = run_gate(url, plan, tmp_path, open_nvml=lambda: Nvml(library), time_copies=copies)
    assert result["verdict"] == verdict, result["reasons"]
    assert reason is None or said(result, reason)
    kept = json.loads((tmp_path / "result.json").read_text())["points"][0]["gpus"][1]["sharing"]
    assert kept["verdict"] == {"pass": "free"}.get(verdict, "shared" if copies.figures else "unknown")
