# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Weights from a hub, carried by the real client: whole, pinned, resumed, and without a trace of the token."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.fetch import fetch

CANARY = "hf_canary0123456789"
WEIGHTS = ("model-1-of-2.safetensors", "model-2-of-2.safetensors")


def command_lines():
    """Return the command lines of every process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def test_fetched_whole_named_at_the_end_and_not_asked_again(from_hub, hub, model):
    wanted = from_hub()
    first = fetch(wanted)
    folder = Path(first["path"])
    assert first["changed"] and first["origin"] == "hub inferops/tiny"
    assert {path.name for path in folder.iterdir()} == {path.name for path in model.iterdir()}
    assert all(path.stat().st_mode & 0o222 == 0 for path in (folder, *folder.iterdir()))
    assert set(first["sha256"]) == set(WEIGHTS)
    assert not list(folder.parent.glob("*.partial"))
    assert hub.strange_tokens == []
    hub.asked.clear()
    second = fetch(wanted)
    assert not second["changed"] and second["sha256"] == first["sha256"] and hub.asked == []


def test_what_was_cut_short_is_gone_on_with(from_hub, hub):
    wanted = from_hub()
    hub.cut = 4 * 2**20
    with pytest.raises(InferopsError, match="cannot be had from hub") as caught:
        fetch(wanted)
    assert not wanted.folder.exists() and "the next run goes on" in caught.value.details["why"]
    hub.cut, sent = None, hub.sent
    assert fetch(wanted)["changed"]
    assert hub.sent - sent < 4 * 2**20


def test_the_token_is_seen_nowhere(from_hub, hub, tmp_path):
    hub.mib_per_s = 3
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.extend(line for line in command_lines() if CANARY.encode() in line or b"--local-dir" in line)
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = fetch(from_hub())
    done.set()
    watcher.join()
    assert any(b"--local-dir" in line for line in seen) and not any(CANARY.encode() in line for line in seen)
    assert CANARY not in str(result)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == []


def test_a_failure_does_not_tell_the_token(from_hub, hub):
    hub.token = "another"
    with pytest.raises(InferopsError, match="cannot be had") as caught:
        fetch(from_hub())
    assert "401" in str(caught.value) and CANARY not in str(caught.value)


def test_a_branch_is_no_revision(from_hub):
    with pytest.raises(InferopsError, match="main is no commit"):
        from_hub(revision="main")


def test_a_commit_that_is_not_there(from_hub):
    with pytest.raises(InferopsError, match="cannot be had") as caught:
        fetch(from_hub(revision="f" * 40))
    assert "no such model or commit" in str(caught.value)


def test_the_limit_holds_for_a_client_that_knows_none(from_hub, hub):
    hub.mib_per_s = 6  # a client that is through between two looks cannot be held
    begun = time.monotonic()
    fetch(from_hub(mib_per_s=2))
    assert time.monotonic() - begun > 2


def test_check_mode_tells_the_size_and_fetches_nothing(from_hub, model):
    wanted = from_hub()
    told = fetch(wanted, check_mode=True)
    assert told["changed"] and not told["present"] and not wanted.root.exists()
    assert told["fetched_bytes"] == sum(path.stat().st_size for path in model.iterdir())


def test_patterns_are_left_out(from_hub, hub, model):
    (model / "model.bin").write_bytes(b"PK\x03\x04")
    source = {"kind": "hub", "repo": "inferops/tiny", "endpoint": hub.url, "exclude": ["*.bin"]}
    folder = Path(fetch(from_hub(source=source))["path"])
    assert (folder / WEIGHTS[0]).exists() and not (folder / "model.bin").exists()


def test_offline_asks_nobody(from_hub, hub):
    with pytest.raises(InferopsError, match="nothing may be fetched"):
        fetch(from_hub(offline=True))
    assert hub.asked == []
    fetch(from_hub())
    assert not fetch(from_hub(offline=True))["changed"]


def test_a_file_that_the_hub_promised_otherwise_is_refused_and_fetched_anew(from_hub, hub):
    """The hub's own list says another SHA-256 than what comes."""
    honest = hub.files

    def lying():
        files = honest()
        for name in WEIGHTS[1:]:
            files[name]["lfs"] = "0" * 64
        return files

    hub.files = lying
    with pytest.raises(InferopsError, match=r"not what was promised: model-2-of-2\.safetensors"):
        fetch(from_hub())
    hub.files = honest
    assert fetch(from_hub())["changed"]


def test_progress_that_cannot_be_written_ends_no_fetch(from_hub):
    wanted = from_hub()
    path = wanted.beside("progress")
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/full")
    assert fetch(wanted)["present"]
