"""The tests that need a GPU are run here on stand-ins, so that the first machine with a card does not meet a slip of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml")
ROOT = Path(__file__).resolve().parents[3]


def outcomes(libraries, folder, count):
    """Return each test of tests/gpu with how it ended on a machine with so many stand-in cards."""
    (folder / "nvml.conf").write_text(f"count {count}\n")
    env = {
        "LD_LIBRARY_PATH": str(libraries),
        "INFEROPS_FAKE_NVML_CONF": str(folder / "nvml.conf"),
        "INFEROPS_FAKE_NVML_STATE": str(folder / "state"),
        "INFEROPS_FAKE_CUDA": "1600,1600",
    }
    words = [sys.executable, "-m", "pytest", "-m", "gpu", "-vv", "-p", "no:cacheprovider", "tests/gpu"]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False)
    found = dict(re.findall(r"::test_(\w+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout))
    assert found, done.stdout + done.stderr
    return found


@pytest.fixture(scope="session")
def libraries(nvml_library):
    subprocess.run([sys.executable, ROOT / "tests/fakes/build", "cuda", nvml_library.parent], check=True, capture_output=True)
    return nvml_library.parent


def test_on_stand_ins_what_asks_passes_and_what_a_card_alone_does_fails(libraries, tmp_path):
    assert outcomes(libraries, tmp_path, count=2) == {
        "cards_are_those_that_nvidia_smi_lists": "SKIPPED",
        "everything_that_the_gate_watches_can_be_read": "PASSED",
        "the_module_in_the_kernel_is_the_one_that_nvml_talks_to": "FAILED",
        "cuda_works_on_every_idle_card": "PASSED",
        "the_bandwidth_of_an_idle_card_is_repeatable_and_below_the_data_sheet": "PASSED",
        "a_card_that_copies_is_seen_to_work": "FAILED",
    }


def test_without_a_card_all_are_skipped(libraries, tmp_path):
    assert set(outcomes(libraries, tmp_path, count=0).values()) == {"SKIPPED"}
