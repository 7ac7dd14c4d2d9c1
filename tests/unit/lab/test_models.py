"""A simulated weight file is a valid safetensors file of the right size that takes no space."""

from __future__ import annotations

import json

from inferops_lab.models import write_shard


def test_a_shard_has_header_and_size_but_no_blocks(tmp_path):
    path = tmp_path / "model.safetensors"
    write_shard(path, "t", 10_000_000)
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        assert path.stat().st_size == file.tell() + header["t"]["data_offsets"][1]
    assert path.stat().st_blocks * 512 < 1_000_000
