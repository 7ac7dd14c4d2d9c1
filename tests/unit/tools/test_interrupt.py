# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ctrl-C while tools/inferops is still being loaded ends quietly, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "tools" / "inferops"


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not part of the released collection")
@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25])
def test_no_traceback_at_any_moment(delay_s):
    process = subprocess.Popen(
        [PROGRAM, "--help"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "INFEROPS_PYTHON": sys.executable},
        start_new_session=True,
    )
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    assert "Traceback" not in process.communicate(timeout=60)[1]
