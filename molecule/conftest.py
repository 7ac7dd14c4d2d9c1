"""What the tests of every story share: the state of the host, and the output of the plays."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "plugins" / "module_utils")]

from inferops_demo.view import INSTANCE, PROBE, PROMOTED_UNIT, View  # noqa: E402

__all__ = ["PROMOTED_UNIT"]


@pytest.fixture
def view(host) -> View:
    """What is on the host now."""
    found = host.run("python3 -c %s", PROBE.replace("INSTANCE", INSTANCE))
    assert found.rc == 0, found.stderr
    return View(json.loads(found.stdout))


@pytest.fixture(scope="session")
def kept() -> Path:
    """The folder with the output of the plays."""
    return Path(os.environ["STORY_OUT"])


@pytest.fixture
def serves(host):
    """Return the names that the front serves; an empty list when it is closed."""

    def ask() -> list[str]:
        answer = host.run("curl -sf -m 5 http://127.0.0.1:8000/v1/models")
        return [entry["id"] for entry in json.loads(answer.stdout)["data"]] if answer.rc == 0 else []

    return ask


@pytest.fixture(autouse=True)
def journal_on_failure(request, host):
    """Show the end of the journal beside a failed test."""
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before:
        lines = host.run("journalctl -n 2000 --no-pager -u 'sglang-*' -u 'inferops-*'").stdout.splitlines()
        print("\n".join([line for line in lines if "Decode batch" not in line and "HTTP/1.1" not in line][-40:]))
