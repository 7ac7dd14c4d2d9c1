# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards: facts, samples, summaries; what is absent stays absent."""

from __future__ import annotations

import time

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.gpu import GpuSampler, throttled
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError, Nvml, gpu_facts

from .fake_pynvml import FakePynvml


def sampler(library, written):
    made = GpuSampler(clock_ns=time.monotonic_ns, write=written.append, open_nvml=lambda: Nvml(library), period_s=0.01)
    made.place(1, 2)
    return made


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
    written: list = []
    watch = sampler(FakePynvml(reasons=0x04), written)
    start = time.monotonic_ns()
    time.sleep(0.08)
    end = time.monotonic_ns()
    watch.close()
    first, second = watch.summary([(start, end)])
    assert first["power_w"] == {"mean": 85, "max": 85, "limit": 600}
    # An idle card is a real zero.
    assert first["utilization_ratio"] == 0
    assert (first["stage"], second["stage"]) == (0, 1)
    assert first["samples"] >= 2
    assert written
    # The power limit is how a busy card runs: recorded, not held against the figure.
    assert first["throttle"] == ["sw_power_cap"]
    assert throttled([first, second]) == []
    assert watch.summary([(0, 1)])[0]["power_w"] == {"mean": None, "max": None, "limit": 600}


def test_heat_is_held_against_the_figure():
    watch = sampler(FakePynvml(reasons=0x40), [])
    time.sleep(0.05)
    watch.close()
    reasons = throttled(watch.summary([(0, time.monotonic_ns())]))
    assert len(reasons) == 2
    assert "hw_thermal_slowdown" in reasons[0]


def test_a_process_that_came_during_the_run_is_named():
    library = FakePynvml()
    watch = sampler(library, [])
    assert watch.newcomers() == []
    library.pids[1] = [100, 4242424]
    assert watch.newcomers() == [4242424]
    watch.close()


def test_without_nvml_the_problem_is_said():
    def none():
        raise NoNvmlError("not here")

    watch = GpuSampler(clock_ns=time.monotonic_ns, write=pytest.fail, open_nvml=none)
    assert (watch.problem, watch.summary([(0, 1)]), watch.newcomers()) == ("not here", [], [])
    watch.close()
