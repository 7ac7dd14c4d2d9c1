"""What only cards can show of our own code, on NVML, CUDA and the driver's files: `tests/run gpu`, a minute. docs/gpu.md

It downloads and changes nothing; cards that somebody works on are left alone. Without a GPU every test here is skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))
from _core.driver.read import read_facts
from _core.gate.card_bandwidth import card_bandwidths, card_contexts
from _core.gate.nvml import Nvml, gpu_facts

pytestmark = pytest.mark.gpu
# Memory bandwidth by the makers' data sheets [GB/s].
DATA_SHEETS = {"B200": 8000, "H200": 4800, "H100 80GB HBM3": 3350, "A100-SXM4-80GB": 2039, "RTX PRO 6000": 1792}


@pytest.fixture(scope="module")
def seen():
    found = gpu_facts()
    if not found["available"] or not found["gpus"]:
        pytest.skip(f"no GPU: {found['reason']}")
    print("\n", found["facts"])
    return found


@pytest.fixture
def nvml(seen):
    opened = Nvml()
    yield opened
    opened.close()


def run(*words):
    if shutil.which(words[0]) is None:
        return 127, ""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_cards_are_those_that_nvidia_smi_lists(seen):
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no nvidia-smi beside the GPU")
    dummy, said = run("nvidia-smi", "--query-gpu=uuid,name,memory.total,driver_version", "--format=csv,noheader,nounits")
    theirs = [tuple(part.strip() for part in line.split(",")) for line in said.splitlines()]
    driver = seen["facts"]["driver_version"]
    assert theirs == [(one["uuid"], one["name"], str(one["memory_mib"]), driver) for one in seen["gpus"]]


def test_everything_that_the_gate_watches_can_be_read(seen, nvml):
    for one in seen["gpus"]:
        now = nvml.reading(one["index"]) | nvml.slow_reading(one["index"])
        print("\n", one, now)
        told = {key: value for key, value in (one | now).items() if value is None}
        # These some cards do not have.
        assert set(told) <= {"ecc", "ecc_errors", "memory_busy_ratio", "pcie_width", "pcie_width_max", "power_limit_range_w"}
        assert 0 < now["power_w"] <= one["power_limit_w"] * 1.1 and 10 < now["temperature_celsius"] < 110
        assert 0 <= now["memory_mib"] <= one["memory_mib"]
    assert nvml.processes() is not None


def test_the_module_in_the_kernel_is_the_one_that_nvml_talks_to(seen):
    loaded = read_facts(run).loaded
    assert loaded is not None and loaded.version == seen["facts"]["driver_version"]


def test_cuda_works_on_every_idle_card(seen):
    contexts = card_contexts(allowed=True)["contexts"]
    print("\n", contexts)
    assert [one["said"] for one in contexts if one["works"] is False] == []
    assert len(contexts) == len(seen["gpus"]) and any(one["works"] for one in contexts)


def test_the_bandwidth_of_an_idle_card_is_repeatable_and_below_the_data_sheet(seen, tmp_path):
    first, second = (card_bandwidths(allowed=True, file=None) for dummy in range(2))
    print("\n", first, second)
    assert first["bandwidth_notes"] == second["bandwidth_notes"] == []
    for one, figure, again in zip(seen["gpus"], first["bandwidths_gb_s"], second["bandwidths_gb_s"], strict=True):
        assert again == pytest.approx(figure, rel=0.05)
        sheet = next((value for name, value in DATA_SHEETS.items() if name in one["name"]), None)
        assert (0.6 * sheet if sheet else 100) < figure < (sheet or 10_000)


def test_a_card_that_copies_is_seen_to_work(seen, nvml):
    idle = [nvml.reading(one["index"]) for one in seen["gpus"]]
    copying = threading.Thread(target=card_bandwidths, kwargs={"allowed": True, "file": None})
    copying.start()
    most = [dict(one) for one in idle]
    while copying.is_alive():
        for index, one in enumerate(most):
            now = nvml.reading(index)
            most[index] = {key: max(one[key], now[key]) for key in ("power_w", "utilization_ratio")}
        time.sleep(0.05)
    print("\n", idle, most)
    for before, during in zip(idle, most, strict=True):
        assert during["power_w"] > before["power_w"] * 1.1 and during["utilization_ratio"] > 0.3
