#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""tiny_model.py FOLDER: write a small model, real safetensors in two shards, index, config, tokenizer and code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

SHARD_BYTES = 3 * 2**20
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}


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
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "modeling_tiny.py").write_text("SIZE = 1\n")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return folder


if __name__ == "__main__":
    make_model(Path(sys.argv[1]))
