# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards: facts, samples, summaries; what is absent stays absent."""

from __future__ import annotations

import pickle

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.gpu import Cards, throttled
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError, Nvml, gpu_facts

from .fake_pynvml import FakePynvml


def cards(library):
    made = Cards(lambda: Nvml(library))
    made.place(1, 2)
    return made


def read(watched, count, *, every_ns=200_000_000):
    for turn in range(count):
        watched.read(turn * every_ns)
    return [(0, count * every_ns)]


def test_facts_have_the_shape_of_facts_json():
    answer = gpu_facts(lambda: Nvml(FakePynvml()))
    assert answer["facts"] == {
        "platform": "cuda",
        "gpu_count": 2,
        "gpu_name": "Card",
        "sm": 120,
        "gpu_memory_mib": 97887,
        "driver_version": "580.95.05",
        "cuda_version": "13.0",
    }
    assert answer["gpus"][1]["power_limit_w"] == 600
    assert answer["gpus"][1]["ecc"] is None


def test_cards_that_differ_leave_the_name_unknown():
    library = FakePynvml()
    library.names = ["Card", "Other"]
    assert "gpu_name" not in gpu_facts(lambda: Nvml(library))["facts"]


def test_no_driver_is_no_failure_and_no_zero():
    answer = gpu_facts(lambda: Nvml(FakePynvml(broken=True)))
    assert (answer["available"], answer["facts"], answer["gpus"]) == (False, {}, [])
    assert "Driver Not Loaded" in answer["reason"]


def test_summary_covers_the_window_alone_and_names_stages():
    watched = cards(FakePynvml(reasons=0x04))
    read(watched, 10)
    first, second = watched.summary([(0, 1_000_000_000)])
    assert first["power_w"] == {"mean": 85, "max": 85, "limit": 600}
    # An idle card is a real zero, and what the driver does not offer is absent.
    assert (first["utilization_ratio"], first["memory_busy_ratio"]) == (0, 0)
    assert (first["temperature_celsius"], first["ecc_errors"], first["pcie"]["width"]) == (None, None, None)
    assert (first["stage"], second["stage"]) == (0, 1)
    assert first["samples"] == 6
    assert first["memory_mib"] == 80000
    # The power limit is how a busy card runs: recorded, not held against the figure.
    assert first["throttle"] == ["sw_power_cap"]
    assert throttled([first, second]) == []
    assert watched.summary([(-2, -1)])[0]["power_w"] == {"mean": None, "max": None, "limit": 600}


def test_heat_is_held_against_the_figure():
    watched = cards(FakePynvml(reasons=0x40))
    reasons = throttled(watched.summary(read(watched, 3)))
    assert reasons == ["clocks were held back by heat on all 2 cards, in up to 100 % of the readings"]


def test_a_driver_that_tells_no_reasons_is_unknown_not_healthy():
    class Silent(FakePynvml):
        def nvmlDeviceGetCurrentClocksEventReasons(self, _):
            raise self.NVMLError("Not Supported")

    watched = cards(Silent())
    assert watched.summary(read(watched, 3))[0]["throttled_ratio"] is None


def test_a_process_that_came_during_the_run_is_named_also_when_it_has_left_again():
    library = FakePynvml()
    watched = cards(library)
    assert watched.strangers() == {}
    library.pids = [[100], [100, 4242424]]
    read(watched, 1)
    assert watched.strangers() == {1: {4242424: True}}
    library.pids = [[100], [100]]
    read(watched, 5)
    assert watched.strangers() == {1: {4242424: False}}
    watched.forget()
    assert watched.strangers() == {}


@pytest.mark.parametrize(
    ("pids", "strangers"),
    [
        pytest.param([[1, 9], [2], [3], [4]], {0: {9: True}}, id="another's beside the server"),
        pytest.param([[1], [2], [8], [9]], {}, id="on cards that are not the server's"),
        pytest.param([[1, 9], [2], [8], [9]], {0: {9: True}}, id="on both kinds"),
        pytest.param([[1, 77], [2], [3], [4]], {}, id="of which nothing can be seen: there before we came"),
    ],
)
def test_strangers_are_of_another_control_group_on_cards_of_the_server(pids, strangers):
    library = FakePynvml(4)
    library.pids = pids
    groups = {1: "a", 2: "a", 3: "a", 4: "a", 8: "b", 9: "b"}
    watched = Cards(lambda: Nvml(library), groups.get)
    watched.place(1, 2)
    assert watched.strangers() == strangers


def test_our_own_copies_are_no_strangers():
    library = FakePynvml()
    watched = cards(library)
    watched.copying, library.pids = True, [[100], [100, 4242424]]
    read(watched, 6)
    watched.copying, library.pids = False, [[100], [100]]
    assert watched.strangers() == {}


@pytest.mark.parametrize("begin", [True, False])
def test_ours_may_begin_or_end_while_the_driver_is_being_asked(begin):
    class Slow(FakePynvml):
        began = False

        def nvmlDeviceGetComputeRunningProcesses(self, index):
            if self.began:
                watched.copying = begin
            return super().nvmlDeviceGetComputeRunningProcesses(index)

    library = Slow()
    watched = Cards(lambda: Nvml(library))
    watched.copying = not begin
    library.began, library.pids = True, [[100], [100, 4242424]]
    read(watched, 1)
    assert watched.strangers() == {}


def test_a_card_that_falls_silent_is_said_by_name_and_may_come_back():
    class Lost(FakePynvml):
        lost = False

        def __getattribute__(self, name):
            if name.startswith("nvmlDeviceGet") and object.__getattribute__(self, "lost"):
                raise AttributeError(name)
            return super().__getattribute__(name)

    library = Lost()
    watched = cards(library)
    read(watched, 6)
    assert watched.silence() == []
    library.lost = True
    read(watched, 1)
    assert watched.silence()[1] == "card 1 (GPU-1, stage 1) no longer answers: what it does is unknown since then"
    assert watched.summary([(0, 10**12)])[1]["samples"] == 7
    library.lost = False
    read(watched, 1)
    assert watched.silence() == []


def test_traffic_is_asked_of_one_card_in_turn_since_the_driver_counts_for_twenty_milliseconds():
    library = FakePynvml()
    watched = cards(library)
    window = read(watched, 50)
    assert library.calls["pcie"] == 2 * 50 / 5
    assert [card["pcie"]["tx_bytes_per_s"] for card in watched.summary(window)] == [1_000_000, 2_000_000]
    assert watched.summary(window)[1]["pcie"]["rx_bytes_per_s"] == 2_001_000


@pytest.mark.parametrize(("status", "refused"), [(0, [[], []]), (4, [[1], [0]]), (6, [None, None]), (None, [None, None])])
def test_direct_reads_between_cards(status, refused):
    library = FakePynvml()
    library.p2p = status
    assert [card["p2p_refused"] for card in cards(library).summary([])] == refused


def test_an_xid_names_the_card_and_a_flood_stays_short_r44():
    library = FakePynvml()
    watched = cards(library)
    library.xids = [(1, 31)] + [(1, 79)] * 200
    read(watched, 200)
    assert watched.deadly() == ["host unhealthy: Xid 79 on card 1 (GPU-1, stage 1): the card has fallen off the bus"]
    assert len(watched.xids) == 16
    assert [len(card["xid"]) for card in watched.summary([])] == [0, 16]
    assert Cards(lambda: Nvml(FakePynvml())).deadly() == []


def test_a_flood_of_other_xids_hides_no_deadly_one_r44():
    library = FakePynvml()
    watched = cards(library)
    library.xids = [(0, 31)] * 40 + [(1, 154)] * 40 + [(None, 79)]
    read(watched, 60)
    assert [reason.split(" on ")[0] for reason in watched.deadly()] == ["host unhealthy: Xid 79", "host unhealthy: Xid 154"]
    assert len(watched.xids) <= 18


def test_where_the_driver_tells_of_no_xid_there_is_none_and_not_zero_r44():
    class Deaf(FakePynvml):
        def nvmlDeviceRegisterEvents(self, index, kinds, events):
            raise self.NVMLError("Not Supported")

    assert [card["xid"] for card in cards(Deaf()).summary([])] == [None, None]
    assert [card["xid"] for card in cards(FakePynvml()).summary([])] == [[], []]


def test_without_nvml_the_problem_is_said():
    def none():
        raise NoNvmlError("not here")

    watched = Cards(none)
    assert (watched.problem, watched.read(0), watched.summary([(0, 1)]), watched.strangers()) == ("not here", [], [], {})
    watched.close()


def test_room_does_not_grow_with_the_run():
    watched, length = cards(FakePynvml()), 20_000
    window = read(watched, length)
    assert len(pickle.dumps(watched._folded)) < 2 * len(pickle.dumps(filled(400)._folded))
    assert watched.summary(window)[0]["samples"] == length
    part = watched.summary([(window[0][1] // 4, window[0][1] // 2)])[0]["samples"]
    assert part == pytest.approx(length / 4, rel=0.02)


def filled(count):
    watched = cards(FakePynvml())
    read(watched, count)
    return watched
