"""The story on SGLang itself, on this machine's processor: minutes of a core, so that one ansible-core plays it."""

from __future__ import annotations

import os

import pytest
from test_story import REAL, play


@pytest.mark.skipif(os.geteuid() != 0, reason="test hosts need root")
@pytest.mark.parametrize("scenario", sorted(REAL))
def test_real_engine(run, scenario, record_property):
    record_property("seconds", play(run, scenario))
