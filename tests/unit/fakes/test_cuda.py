# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bandwidth through the driver's own calling convention: a stand-in libcuda in C whose cards copy at a known speed."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.apart import leave
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.bandwidth import (
    Cuda,
    NoCudaError,
    measure,
    measure_apart,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.contexts import create_contexts

BUILD = Path(__file__).resolve().parents[2] / "fakes" / "build"


def card(number):
    return f"GPU-51a70000-0000-4000-8000-{number:012x}"


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("cuda")
    built = subprocess.run([sys.executable, str(BUILD), "cuda", str(folder)], check=True, capture_output=True, text=True)
    return ctypes.CDLL(built.stdout.strip())


@pytest.fixture
def cuda(library):
    """cuda(setting) → what opens the driver; the library reads its setting from the process environment."""

    def with_setting(setting, free_mib=None):
        os.environ["INFEROPS_FAKE_CUDA"] = setting
        if free_mib is not None:
            os.environ["INFEROPS_FAKE_CUDA_FREE_MIB"] = str(free_mib)
        return lambda: Cuda(library)

    yield with_setting
    for name in ("INFEROPS_FAKE_CUDA", "INFEROPS_FAKE_CUDA_FREE_MIB"):
        os.environ.pop(name, None)


def test_each_card_is_measured_by_itself(cuda):
    found = measure([card(0), card(1)], open_cuda=cuda("1600,800"))
    assert found["problems"] == []
    assert found["gb_s"][card(0)] == pytest.approx(1600, rel=0.05)
    assert found["gb_s"][card(1)] == pytest.approx(800, rel=0.05)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("1600;fail cuInit 100", "cuInit failed with CUDA error 100"),
        ("1600;fail cuMemAlloc_v2 2", "cuMemAlloc_v2 failed with CUDA error 2"),
        ("1600;fail cuMemcpyDtoDAsync_v2 719", "cuMemcpyDtoDAsync_v2 failed with CUDA error 719"),
    ],
)
def test_a_driver_that_refuses_is_said_and_leaves_no_memory_taken(cuda, setting, said):
    found = measure([card(0)], open_cuda=cuda(setting))
    assert found["gb_s"] == {} and said in found["problems"][0]
    # The stand-in refuses to release a context that still holds memory.
    assert measure([card(0)], open_cuda=cuda("1600"))["problems"] == []


def test_a_card_that_is_not_shown_or_has_no_room_is_left_out(cuda):
    assert "CUDA does not show it" in measure([card(7)], open_cuda=cuda("1600"))["problems"][0]
    assert "only 500 MiB are free" in measure([card(0)], open_cuda=cuda("1600", free_mib=500))["problems"][0]


def test_a_driver_that_hangs_is_left_behind(cuda):
    opened = cuda("1600;hang cuCtxSynchronize")
    found = measure_apart([card(0)], deadline_s=1, work=lambda cards: measure(cards, open_cuda=opened))
    assert found["gb_s"] == {} and "no answer within 1 s" in found["problems"][0]
    opened = cuda("1600")
    apart = measure_apart([card(0)], deadline_s=30, work=lambda cards: measure(cards, open_cuda=opened))
    assert apart["gb_s"][card(0)] == pytest.approx(1600, rel=0.05)


def test_a_context_is_created_per_card_and_one_that_hangs_or_fails_is_named(cuda):
    """R94: NVML may list a card on which CUDA fails; the one that hangs keeps nobody waiting."""
    one, two = card(0), card(1)
    assert create_contexts([one, two], open_cuda=cuda("1600,1600")) == {one: None, two: None}
    assert create_contexts([one], open_cuda=cuda("1600;fail cuInit 999")) == {one: "cuInit failed with CUDA error 999"}
    assert create_contexts([card(7)], open_cuda=cuda("1600")) == {card(7): "CUDA does not show it"}
    opened = cuda("1600,1600;hang cuCtxSynchronize")
    begun = time.monotonic()
    assert create_contexts([one, two], open_cuda=opened, deadline_s=1) == dict.fromkeys((one, two), "no answer within 1 s")
    assert time.monotonic() - begun < 5, "one deadline for all cards"


def test_a_process_that_does_not_end_is_not_waited_for():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stuck:
        assert leave(stuck.pid, within_s=0.1) is False
        stuck.kill()


def test_without_a_driver_nothing_is_known():
    class Nothing:
        pass

    with pytest.raises(NoCudaError, match="has no cuInit"):
        Cuda(Nothing())
