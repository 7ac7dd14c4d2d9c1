# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A small model, a hub that serves it, the programs that carry it."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import wish

FAKES = Path(__file__).resolve().parents[6] / "tests" / "fakes" / "hub"
REVISION = "0123456789abcdef0123456789abcdef01234567"
CANARY = "hf_canary0123456789"
SHARD_BYTES = 3 * 2**20


def write_shard(path, layer, size=SHARD_BYTES):
    entry = {f"model.layers.{layer}.w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    header = json.dumps(entry).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes([layer]) * size)


def make_model(folder, layers=2):
    """Write config, tokenizer, code, index and one shard for each layer."""
    folder.mkdir(parents=True)
    names = {f"model.layers.{layer}.w": f"model-{layer + 1}-of-{layers}.safetensors" for layer in range(layers)}
    for layer, name in enumerate(names.values()):
        write_shard(folder / name, layer)
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "modeling_tiny.py").write_text("SIZE = 1\n")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return folder


@pytest.fixture
def model(tmp_path):
    return make_model(tmp_path / "published")


@pytest.fixture(scope="session")
def fake_hub():
    sys.path.insert(0, str(FAKES))
    yield importlib.import_module("fake_hub")
    sys.path.remove(str(FAKES))


@pytest.fixture(scope="session")
def hf(fake_hub):
    return importlib.import_module("client").hf()


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
