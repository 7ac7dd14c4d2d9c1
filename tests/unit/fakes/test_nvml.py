"""The stand-in NVML through the real nvidia-ml-py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml")

SCRIPT = """
import json, pynvml as n
n.nvmlInit()
out = {"driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion_v2(), "gpus": []}
for index in range(n.nvmlDeviceGetCount()):
    try:
        h = n.nvmlDeviceGetHandleByIndex(index)
        memory, memory2 = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2)
        rates = n.nvmlDeviceGetUtilizationRates(h)
        out["gpus"].append({
            "name": n.nvmlDeviceGetName(h), "uuid": n.nvmlDeviceGetUUID(h), "bus": n.nvmlDeviceGetPciInfo(h).busId,
            "total": memory.total, "used": memory.used, "sum2": memory2.free + memory2.used + memory2.reserved,
            "power": n.nvmlDeviceGetPowerUsage(h), "limit": n.nvmlDeviceGetEnforcedPowerLimit(h),
            "constraints": list(n.nvmlDeviceGetPowerManagementLimitConstraints(h)), "util": rates.gpu, "mem_util": rates.memory,
            "temp": n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU), "sm": n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
            "throttle": n.nvmlDeviceGetCurrentClocksThrottleReasons(h), "cc": list(n.nvmlDeviceGetCudaComputeCapability(h)),
            "persistence": n.nvmlDeviceGetPersistenceMode(h), "ecc": list(n.nvmlDeviceGetEccMode(h)),
            "mig": list(n.nvmlDeviceGetMigMode(h)),
            "pids": [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h)],
            "bar1": n.nvmlDeviceGetBAR1MemoryInfo(h).bar1Total,
            "again": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h))),
            "by_bus": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(h).busId)),
        })
    except n.NVMLError as exc:
        out["gpus"].append(type(exc).__name__)
n.nvmlShutdown()
print(json.dumps(out))
"""


@pytest.fixture
def ask(nvml_library, tmp_path):
    conf, state = tmp_path / "nvml.conf", tmp_path / "nvml.state"

    def raw(script, *words):
        env = os.environ | {
            "LD_LIBRARY_PATH": str(nvml_library.parent),
            "INFEROPS_FAKE_NVML_CONF": str(conf),
            "INFEROPS_FAKE_NVML_STATE": str(state),
        }
        done = subprocess.run([sys.executable, "-c", script, *words], env=env, capture_output=True, text=True, check=True)
        return done.stdout

    def run():
        return json.loads(raw(SCRIPT))

    run.conf, run.state, run.raw = conf, state, raw
    return run


def test_the_default_machine(ask):
    seen = ask()
    assert (seen["driver"], seen["cuda"], len(seen["gpus"])) == ("580.95.05", 13000, 8)
    first = seen["gpus"][0]
    assert first["name"] == "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert first["total"] == first["sum2"] == 97887 << 20
    assert (first["cc"], first["limit"], first["constraints"]) == ([12, 0], 600_000, [300_000, 600_000])
    assert first["power"] == 30_000
    assert len({g["uuid"] for g in seen["gpus"]}) == len({g["bus"] for g in seen["gpus"]}) == 8
    assert [g["again"] for g in seen["gpus"]] == [g["by_bus"] for g in seen["gpus"]] == list(range(8))
    assert all(g["pids"] == [] for g in seen["gpus"])


def test_an_engine_writes_what_the_cards_do_until_it_is_gone(ask):
    ask.state.write_text(
        "gpu 2 power_mw 85000\ngpu 2 util 51\ngpu 2 mem_util 33\ngpu 2 mem_used_mib 83000\ngpu 2 throttle 32\ngpu 2 pid 77\n"
    )
    third = ask()["gpus"][2]
    assert (third["power"], third["util"], third["mem_util"], third["used"], third["throttle"]) == (
        85_000,
        51,
        33,
        83000 << 20,
        0x20,
    )
    assert third["pids"] == [77]
    os.utime(ask.state, (0, 0))
    assert ask()["gpus"][2]["power"] == 30_000


def test_another_machine_and_staged_failures(ask):
    ask.conf.write_text("# seven cards\ncount 7\ndriver 575.51.03\nfail nvmlDeviceGetPowerUsage 3\ngpu 3 lost 1\n")
    seen = ask()
    assert (seen["driver"], len(seen["gpus"])) == ("575.51.03", 7)
    assert seen["gpus"][0] == "NVMLError_NotSupported"
    assert seen["gpus"][3] == "NVMLError_GpuIsLost"


def test_no_driver(ask):
    ask.conf.write_text("fail nvmlInitWithFlags 9\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        ask()
    assert "DriverNotLoaded" in failed.value.stderr


def test_the_fake_engine_shows_on_the_cards(ask, start):
    running = start("--pp-size", "8", "--disable-cuda-graph", timescale=10)
    running.json("/v1/completions", {"prompt": [1] * 64, "max_tokens": 300, "ignore_eos": True})
    ask.state.write_text((running.folder / "nvml.state").read_text())
    cards = ask()["gpus"]
    assert all(g["pids"] == [running.process.pid] for g in cards)
    assert all(45_000 <= g["power"] <= 120_000 for g in cards)
    assert all(g["used"] > 80_000 << 20 for g in cards)


OURS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from _core.gate.nvml import Nvml
nvml = Nvml()
print(json.dumps([nvml.listen(), nvml.xids(), nvml.xids(), nvml.p2p_refused(), nvml.slow_reading(2) | nvml.traffic(2)]))
"""


def test_our_readings_through_the_real_binding(ask):
    import ansible_collections.inferops.sglang.plugins.module_utils._core as core

    ask.conf.write_text("gpu 3 xid 79\ngpu 2 p2p 4\ngpu 2 ecc_errors 3\ngpu 2 pcie_width 4\ngpu 2 pcie_tx 7\n")
    told, first, again, refused, card = json.loads(ask.raw(OURS, str(Path(core.__file__).parents[1])))
    assert told == [*range(8)]
    assert (first, again, refused) == ([[3, 79]], [], [[1, 2], [2, 3]])
    assert (card["ecc_errors"], card["pcie_width"], card["pcie_tx_bytes_per_s"]) == (3, 4, 7000)
