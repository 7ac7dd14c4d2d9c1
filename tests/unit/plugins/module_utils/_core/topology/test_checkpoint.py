# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A model folder: each thing that can be missing or cut short is refused by name; a whole one is described."""

from __future__ import annotations

import json
import shutil

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.topology.checkpoint import INDEX, model_facts, read_checkpoint


def write_shard(path, size=32, *, tensor="t", **changed):
    entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]} | changed
    header = json.dumps({tensor: entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(size))


@pytest.fixture
def folder(tmp_path, fixtures):
    shutil.copy(fixtures / "models" / "kimi_k2_6" / "config.json", tmp_path)
    names = [f"model-{number}-of-3.safetensors" for number in (1, 2, 3)]
    for name in names:
        write_shard(tmp_path / name, tensor=f"w{name}")
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": {f"w{name}": name for name in names}}))
    return tmp_path


def test_a_whole_folder_is_described(folder):
    facts = model_facts(str(folder))
    assert facts["architectures"] == ["KimiK25ForConditionalGeneration"]
    assert (facts["num_layers"], facts["shards"], facts["index"], facts["quantization"]) == (61, 3, INDEX, "compressed-tensors")
    assert facts["weights_bytes"] == sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    json.dumps(facts)


def test_a_single_file_needs_no_index(folder):
    for path in [*folder.glob("*.safetensors"), folder / INDEX]:
        path.unlink()
    write_shard(folder / "model.safetensors")
    assert model_facts(str(folder))["shards"] == 1


def break_folder(folder, how):
    shard = folder / "model-2-of-3.safetensors"
    config = json.loads((folder / "config.json").read_text())
    if how == "no config":
        (folder / "config.json").unlink()
    elif how == "config cut":
        (folder / "config.json").write_text('{"architectures": [')
    elif how == "no architectures":
        config.pop("architectures")
        (folder / "config.json").write_text(json.dumps(config))
    elif how == "shard missing":
        shard.unlink()
    elif how == "shard empty":
        shard.write_bytes(b"")
    elif how == "shard cut":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif how == "shard is a web page":
        shard.write_text("<html>not found</html>")
    elif how == "shard of another model":
        write_shard(shard, tensor="other")
    elif how == "shard is a pickle":
        shard.write_bytes(b"PK\x03\x04" + bytes(400))
    elif how == "shard is an old pickle":
        shard.write_bytes(b"\x80\x02}q\x00." + bytes(b"\xff" * 400))
    elif how == "shard is a pointer":
        shard.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n")
    elif how == "shape and place differ":
        write_shard(shard, tensor=f"w{shard.name}", shape=[31])
    elif how == "gap":
        write_shard(shard, tensor=f"w{shard.name}", data_offsets=[8, 40])
    elif how == "header of deep lists":
        deep = b"[" * 100_000
        shard.write_bytes(len(deep).to_bytes(8, "little") + deep)
    elif how == "layers fewer than said":
        write_shard(shard, tensor="model.layers.59.w")
        index = json.loads((folder / INDEX).read_text())
        index["weight_map"] = {
            "model.layers.59.w" if name == shard.name else tensor: name for tensor, name in index["weight_map"].items()
        }
        (folder / INDEX).write_text(json.dumps(index))
    elif how == "index leaves the folder":
        (folder / INDEX).write_text(json.dumps({"weight_map": {"w": "../model-2-of-3.safetensors"}}))
    elif how == "pickles alone":
        for path in [*folder.glob("*.safetensors"), folder / INDEX]:
            path.unlink()
        (folder / "pytorch_model-1-of-1.bin").write_bytes(b"PK")
    elif how == "index missing":
        (folder / INDEX).unlink()
    elif how == "index empty":
        (folder / INDEX).write_text("{}")


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("no config", "config.json"),
        ("config cut", "config.json"),
        ("no architectures", "architectures"),
        ("shard missing", "model-2-of-3.safetensors"),
        ("shard empty", "model-2-of-3.safetensors is empty"),
        ("shard cut", "model-2-of-3.safetensors has"),
        ("shard is a web page", "model-2-of-3.safetensors is a web page"),
        ("shard of another model", "model-2-of-3.safetensors lacks 1 of the 1 tensors"),
        ("shard is a pickle", "model-2-of-3.safetensors is a PyTorch pickle"),
        ("shard is an old pickle", "model-2-of-3.safetensors is a pickle"),
        ("shard is a pointer", "model-2-of-3.safetensors is a pointer of Git LFS"),
        ("shape and place differ", "takes 32 bytes and its shape 31"),
        ("gap", "leave a gap"),
        ("header of deep lists", "not safetensors"),
        ("layers fewer than said", "the weights hold 60 layers, config.json says 61"),
        ("index leaves the folder", "outside the folder"),
        ("pickles alone", "pytorch_model-1-of-1.bin"),
        ("index missing", INDEX),
        ("index empty", "weight_map"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do_r99(folder, how, named):
    break_folder(folder, how)
    with pytest.raises(InferopsError) as caught:
        read_checkpoint(folder)
    assert named in str(caught.value)
    assert set(caught.value.details) == {"where", "why", "do"}


def test_layers_of_a_picture_tower_are_not_the_decoders(folder):
    index = json.loads((folder / INDEX).read_text())
    name = "vision_tower.encoder.layers.3.w"
    index["weight_map"][name] = "more.safetensors"
    write_shard(folder / "more.safetensors", tensor=name)
    (folder / INDEX).write_text(json.dumps(index))
    assert model_facts(str(folder))["shards"] == 4


def test_a_missing_folder_and_a_file_in_its_place_are_told_apart(tmp_path):
    with pytest.raises(InferopsError, match="does not exist"):
        read_checkpoint(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InferopsError, match="it is a file"):
        read_checkpoint(tmp_path / "file")


def test_a_folder_without_weights_is_fine_only_when_said(folder):
    for path in [*folder.glob("*.safetensors"), folder / INDEX]:
        path.unlink()
    with pytest.raises(InferopsError, match="no weights"):
        read_checkpoint(folder)
    assert model_facts(str(folder), weights_required=False)["weights_bytes"] == 0


def test_present_weights_are_verified_even_when_none_are_required(folder):
    break_folder(folder, "shard cut")
    with pytest.raises(InferopsError):
        read_checkpoint(folder, weights_required=False)


def test_code_of_the_model_is_held_to_what_was_accepted(folder):
    (folder / "modeling.py").write_text("x = 1\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "config.py").write_text("")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "tool.py").write_text("")
    accepted = model_facts(str(folder))["code_files"]
    assert sorted(accepted) == ["modeling.py", "sub/config.py"]
    assert model_facts(str(folder), accepted_code=accepted)["code_files"] == accepted
    (folder / "modeling.py").write_text("x = 2\n")
    (folder / "sub" / "config.py").unlink()
    (folder / "new.py").write_text("")
    with pytest.raises(InferopsError) as caught:
        model_facts(str(folder), accepted_code=accepted)
    assert "modeling.py changed, new.py was added since, sub/config.py is gone" in str(caught.value)
    assert model_facts(str(folder), accepted_code=caught_hashes(caught.value.details["do"]))["shards"] == 3


def caught_hashes(do):
    """What the message tells to accept is what is accepted next."""
    return dict(pair.split(": ") for pair in do.split("accept these: ")[1].split(", "))
