# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Weights by rsync and rclone: every damage is refused with the file named, space is known before, revisions go by policy."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights import fetch as fetching
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import fetch, warm_up, wish

SHARD = "model-2-of-2.safetensors"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def truncate(model):
    path = model / SHARD
    path.write_bytes(path.read_bytes()[:-1])


def pickled(model):
    (model / SHARD).write_bytes(b"\x80\x04" + bytes(400))


def only_pickles(model):
    for path in model.glob("*.safetensors*"):
        path.unlink()
    (model / "pytorch_model.bin").write_bytes(b"PK\x03\x04")


def no_architecture(model):
    (model / "config.json").write_text('{"num_hidden_layers": 2}')


def more_layers(model):
    (model / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 3}')


DAMAGE = {
    truncate: SHARD,
    lambda model: (model / SHARD).unlink(): SHARD,
    pickled: SHARD,
    only_pickles: "pytorch_model.bin",
    no_architecture: "config.json",
    more_layers: "config.json",
    lambda model: (model / "modeling_tiny.py").write_text("SIZE = 2\n"): "modeling_tiny.py",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_never_gets_its_name(damage, from_peer, model):
    accepted = {"modeling_tiny.py": digest(model / "modeling_tiny.py")}
    damage(model)
    wanted = from_peer(accepted_code=accepted)
    with pytest.raises(InferopsError) as caught:
        fetch(wanted)
    assert DAMAGE[damage] in str(caught.value)
    assert not wanted.folder.exists()


def test_a_damaged_model_is_fetched_once_the_source_is_mended(from_peer, model, tmp_path):
    shutil.copytree(model, tmp_path / "good")
    truncate(model)
    with pytest.raises(InferopsError):
        fetch(from_peer())
    shutil.copy(tmp_path / "good" / SHARD, model / SHARD)
    assert fetch(from_peer())["changed"]


@pytest.mark.parametrize("form", ["mapping", "list"])
def test_checksums_of_the_user_are_compared_once(form, from_peer, model, tmp_path):
    sums = {path.name: digest(path) for path in model.glob("*.safetensors")}
    given = sums
    if form == "list":
        given = tmp_path / "SHA256SUMS"
        given.write_text("".join(f"{value}  ./{name}\n" for name, value in sums.items()))
        given = str(given)
    assert fetch(from_peer(sha256=given))["sha256"] == sums
    # As root the mode does not hinder: the time shows that somebody wrote, and the file is read again.
    wanted = from_peer(sha256=given)
    path = wanted.folder / SHARD
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InferopsError, match=f"not what was promised: {SHARD}"):
        fetch(wanted)


def test_the_second_run_reads_no_weights(from_peer, model, monkeypatch):
    sums = {path.name: digest(path) for path in model.glob("*.safetensors")}
    fetch(from_peer(sha256=sums))

    def never(*dummy):
        raise AssertionError("weights were read")

    monkeypatch.setattr(fetching.proven.hashlib, "sha256", never)
    assert not fetch(from_peer(sha256=sums))["changed"]


def test_a_wrong_checksum_is_refused(from_peer):
    with pytest.raises(InferopsError, match=f"promised: {SHARD}"):
        fetch(from_peer(sha256={SHARD: "0" * 64}))
    with pytest.raises(InferopsError, match="no SHA-256"):
        from_peer(sha256={SHARD: "00"})
    with pytest.raises(InferopsError, match=r"gone\.safetensors") as caught:
        fetch(from_peer(sha256={"gone.safetensors": "0" * 64}))
    assert "is missing" in str(caught.value)


def test_space_is_known_before_anything_is_fetched(from_peer):
    wanted = from_peer(reserve_mib=2**40)
    with pytest.raises(InferopsError, match="there is no space for tiny"):
        fetch(wanted)
    assert not wanted.root.exists()
    with pytest.raises(InferopsError, match="there is no space for tiny"):
        fetch(wanted, check_mode=True)


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_target_that_cannot_be_written_is_told_before_anything_is_fetched(from_peer, tmp_path, check_mode):
    (tmp_path / "file").touch()
    with pytest.raises(InferopsError, match=f"{tmp_path}/file cannot be written"):
        fetch(from_peer(root=str(tmp_path / "file" / "models")), check_mode=check_mode)


def test_a_peer_that_has_it_is_taken_first(from_peer, options, tmp_path, model):
    fetch(from_peer())
    shutil.move(model, tmp_path / "gone")
    other = {**options, "root": str(tmp_path / "second"), "source": {"kind": "rsync", "from": str(model)}}
    assert fetch(wish({**other, "peer": options["root"]}))["origin"].startswith(f"rsync {options['root']}/tiny/")
    shutil.move(tmp_path / "gone", model)
    fallen_back = fetch(wish({**other, "root": str(tmp_path / "third"), "peer": str(tmp_path / "empty")}))
    assert fallen_back["origin"] == f"rsync {model}" and "not from the peer" in fallen_back["warnings"][0]


def test_object_storage(options, model):
    wanted = wish({**options, "source": {"kind": "rclone", "remote": str(model)}, "mib_per_s": 100})
    assert fetch(wanted)["changed"] and not fetch(wanted)["changed"]
    assert digest(wanted.folder / SHARD) == digest(model / SHARD)


def test_two_at_once_do_not_write_the_same_files(from_peer):
    wanted = from_peer()
    with fetching._Fetcher(wanted, {}).locked(), pytest.raises(InferopsError, match="another run"):
        fetch(wanted, environ=dict(os.environ))


def test_a_killed_run_leaves_no_process_and_the_next_goes_on(from_peer, options, model):
    """The module's process gets SIGTERM in the middle of a slow fetch."""
    code = (
        "import json, signal, sys\n"
        "from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import fetch, wish\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))\n"
        "fetch(wish(json.load(sys.stdin)))\n"
    )
    given = {**options, "source": {"kind": "rsync", "from": str(model)}, "mib_per_s": 0.5}
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
    process.stdin.write(json.dumps(given).encode())
    process.stdin.close()
    partial = Path(options["root"], "tiny", f"{options['revision']}.partial")
    until = time.monotonic() + 20
    while not (partial / "model-1-of-2.safetensors").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 1
    came = sum(path.stat().st_size for path in partial.iterdir())
    assert 0 < came < 6 * 2**20 and not partial.with_name(options["revision"]).exists()
    assert fetch(from_peer())["changed"]


def revisions(options, model, names):
    """Fetch several revisions, the oldest first."""
    for age, name in enumerate(names):
        wanted = wish({**options, "source": {"kind": "rsync", "from": str(model)}, "revision": name})
        fetch(wanted)
        os.utime(wanted.beside("json"), (1_000 + age, 1_000 + age))
    return Path(options["root"], "tiny")


def test_old_revisions_go_but_never_one_that_a_release_names(options, model, tmp_path):
    folder = revisions(options, model, ["r1", "r2", "r3", "r4"])
    release = tmp_path / "state" / "kimi" / "releases" / "abc" / "release.json"
    release.parent.mkdir(parents=True)
    release.write_text(json.dumps({"model": {"path": str(folder / "r1")}}))
    (folder / "theirs").mkdir()
    last = wish({**options, "source": {"kind": "rsync", "from": str(model)}, "revision": "r5", "keep": 2})
    assert fetch(last)["pruned"] == ["r2", "r3"]
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"r1", "r4", "r5", "theirs"}
    assert not list(folder.glob(".r2.*"))


def test_a_revision_in_use_stays(options, model):
    folder = revisions(options, model, ["r1", "r2"])
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", str(folder / "r1")], stdin=subprocess.PIPE):
        last = wish({**options, "source": {"kind": "rsync", "from": str(model)}, "revision": "r3", "keep": 0})
        assert fetch(last)["pruned"] == ["r2"]


def test_weights_are_read_ahead_when_memory_suffices(from_peer, monkeypatch):
    wanted = from_peer()
    fetch(wanted)
    monkeypatch.setattr(fetching, "available", lambda: 1)
    for path in wanted.folder.iterdir():
        with path.open("rb") as file:
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert "not read ahead" in warm_up(wanted)
    monkeypatch.undo()
    assert "into the page cache" in warm_up(wanted)
    assert warm_up(wanted) == "the weights are in the page cache"


def test_a_folder_that_is_there_is_proven_in_its_place(options, model, tmp_path):
    """Local or NFS: nothing is written into it, hashes are read once."""
    before = {path.name: path.stat() for path in model.iterdir()}
    given = {**options, "name": "", "revision": "", "source": {"kind": "folder", "path": str(model)}}
    sums = {SHARD: digest(model / SHARD)}
    told = fetch(wish({**given, "sha256": sums}))
    assert (told["path"], told["changed"], told["sha256"]) == (str(model), False, sums)
    assert {path.name: path.stat().st_mtime_ns for path in model.iterdir()} == {k: v.st_mtime_ns for k, v in before.items()}
    assert len(list((tmp_path / "records").glob("*.json"))) == 1
    with pytest.raises(InferopsError, match="not what was promised"):
        fetch(wish({**given, "sha256": {SHARD: "0" * 64}}))
    with pytest.raises(InferopsError, match="no such folder"):
        fetch(wish({**given, "source": {"kind": "folder", "path": str(tmp_path / "none")}}))


def test_a_daemon_with_a_password_that_nobody_sees(options, model, tmp_path):
    """The peer is rsync's own daemon on the loopback; its password comes through the environment."""
    secret = "canary0123456789"
    (tmp_path / "secrets").write_text(f"models:{secret}\n")
    (tmp_path / "secrets").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    module = (
        f"[models]\npath = {tmp_path}\nuse chroot = no\nread only = yes\nauth users = models\nsecrets file = {tmp_path}/secrets\n"
    )
    (tmp_path / "daemon.conf").write_text(module + f"uid = {os.getuid()}\ngid = {os.getgid()}\n")
    words = ["rsync", "--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}", f"--config={tmp_path}/daemon.conf"]
    with subprocess.Popen(words) as daemon:
        time.sleep(0.5)
        given = {**options, "source": {"kind": "rsync", "from": f"rsync://models@127.0.0.1:{port}/models/published"}}
        with pytest.raises(InferopsError, match="cannot be had") as caught:
            fetch(wish({**given, "environment": {"RSYNC_PASSWORD": "wrong-wrong"}}))
        told = fetch(wish({**given, "environment": {"RSYNC_PASSWORD": secret}}))
        daemon.terminate()
    assert "auth failed" in str(caught.value) and told["changed"]
    assert not [path for path in (tmp_path / "models").rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
