# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A small model, a hub that serves it, the programs that carry it."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import wish
from programs import program

FAKES = Path(__file__).resolve().parents[6] / "tests" / "fakes" / "hub"
REVISION = "0123456789abcdef0123456789abcdef01234567"
CANARY = "hf_canary0123456789"


@pytest.fixture
def model(fake_hub, tmp_path):
    return importlib.import_module("tiny_model").make_model(tmp_path / "published")


@pytest.fixture(scope="session")
def fake_hub():
    sys.path.insert(0, str(FAKES))
    yield importlib.import_module("fake_hub")
    sys.path.remove(str(FAKES))


@pytest.fixture(scope="session")
def hf():
    return program(FAKES / "client.lock", "hf")


@pytest.fixture
def hub(fake_hub, model):
    server = fake_hub.Hub(model, "inferops/tiny", REVISION, token=CANARY)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def options(tmp_path):
    """What the module takes, without a source."""
    return {
        "root": str(tmp_path / "models"),
        "name": "tiny",
        "revision": REVISION,
        "source": {},
        "peer": "",
        "peer_rsh": "",
        "token": "",
        "environment": {},
        "programs": {},
        "sha256": None,
        "accepted_code": {},
        "weights_required": True,
        "mib_per_s": 0,
        "reserve_mib": 1,
        "keep": -1,
        "offline": False,
        "state_dir": str(tmp_path / "state"),
        "records": str(tmp_path / "records"),
    }


@pytest.fixture
def from_hub(options, hub, hf):
    """A wish for the hub's model, with changes."""

    def make(**changed):
        source = {"kind": "hub", "repo": "inferops/tiny", "endpoint": hub.url}
        return wish({**options, "source": source, "token": CANARY, "programs": {"hub": str(hf)}, **changed})

    return make


@pytest.fixture
def from_peer(options, model):
    """A wish for the same folder by rsync, with changes."""

    def make(**changed):
        return wish({**options, "source": {"kind": "rsync", "from": str(model)}, **changed})

    return make
