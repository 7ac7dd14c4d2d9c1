# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs beside ours: the other installer, and what reads bills of materials."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import program

LOCK = Path(__file__).with_name("programs.lock")


@pytest.fixture(scope="session")
def uv():
    return str(program(LOCK, "uv"))


@pytest.fixture(scope="session")
def cyclonedx():
    """A Python with cyclonedx-python-lib."""
    return str(program(LOCK, "python"))
