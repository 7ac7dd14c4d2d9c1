# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Only with leave, only idle cards; what was measured once is kept for a card that serves."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.card_bandwidth import card_bandwidths, card_contexts
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError, Nvml

from .fake_pynvml import FakePynvml


class Cards(FakePynvml):
    def __init__(self, pids=((), ()), used_mib=4):
        super().__init__()
        self.pids, self.used_mib = [list(one) for one in pids], used_mib

    def nvmlDeviceGetMemoryInfo(self, handle):
        info = super().nvmlDeviceGetMemoryInfo(handle)
        info.used = self.used_mib << 20
        return info


@pytest.fixture
def ask(tmp_path):
    asked = []

    def bandwidths(library, *, allowed=True, kept=True):
        def measure(cards):
            asked.append(list(cards))
            return {"gb_s": {uuid: 1500.0 + index for index, uuid in enumerate(cards)}, "problems": []}

        file = tmp_path / "records" / "bandwidth.json" if kept else None
        return card_bandwidths(allowed=allowed, file=file, open_nvml=lambda: Nvml(library), measure=measure)

    bandwidths.asked, bandwidths.file = asked, tmp_path / "records" / "bandwidth.json"
    return bandwidths


def test_idle_cards_are_measured_and_kept(ask):
    assert ask(Cards()) == {"bandwidths_gb_s": [1500.0, 1501.0], "bandwidth_notes": []}
    assert json.loads(ask.file.read_text()) == {"GPU-0": 1500.0, "GPU-1": 1501.0}
    serving = ask(Cards(pids=((41,), (42,))))
    assert serving["bandwidths_gb_s"] == [1500.0, 1501.0]
    assert serving["bandwidth_notes"][0] == "card GPU-0 is not measured: process 41 computes on it"
    assert ask.asked == [["GPU-0", "GPU-1"]]


def test_without_leave_nothing_is_touched(ask):
    assert ask(Cards(), allowed=False) == {"bandwidths_gb_s": None, "bandwidth_notes": []}
    assert ask.asked == [] and not ask.file.exists()


@pytest.mark.parametrize(
    ("library", "why"),
    [
        (Cards(pids=((), (7,))), "process 7 computes on it"),
        (Cards(used_mib=80_000), "80000 MiB of its memory are taken"),
    ],
)
def test_a_card_in_use_is_left_alone_and_half_a_host_is_none(ask, library, why):
    found = ask(library, kept=False)
    assert found["bandwidths_gb_s"] is None
    assert why in found["bandwidth_notes"][-1]
    assert all("GPU-1" not in cards for cards in ask.asked)


def test_a_driver_that_does_not_tell_who_computes_keeps_us_away(ask):
    class Silent(Cards):
        def nvmlDeviceGetComputeRunningProcesses(self, index):
            raise self.NVMLError("Not Supported")

    library = Silent()
    assert "does not tell whether it is idle" in ask(library)["bandwidth_notes"][0]
    assert ask.asked == []


def test_a_spoilt_record_is_replaced_and_no_driver_is_no_failure(ask):
    ask.file.parent.mkdir()
    ask.file.write_text("[1")
    assert ask(Cards())["bandwidths_gb_s"] == [1500.0, 1501.0]

    def none():
        raise NoNvmlError("no NVML here")

    assert card_bandwidths(allowed=True, file=None, open_nvml=none)["bandwidth_notes"] == ["no NVML here"]


def test_contexts_only_with_leave_and_only_on_idle_cards():
    asked = []

    def create(cards):
        asked.extend(cards)
        return dict.fromkeys(cards, "cuInit failed")

    def contexts(library, *, allowed=True):
        return card_contexts(allowed=allowed, open_nvml=lambda: Nvml(library), create=create)["contexts"]

    assert contexts(Cards(), allowed=False) == [] == asked
    assert contexts(Cards(pids=((), (7,)))) == [
        {"uuid": "GPU-0", "works": False, "said": "cuInit failed"},
        {"uuid": "GPU-1", "works": None, "said": "process 7 computes on it"},
    ]
    assert asked == ["GPU-0"]
    assert contexts(FakePynvml(broken=True)) == []
