"""What carries the weights may end at any moment, also while it is held back."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights import carry as carrier
from ansible_collections.inferops.sglang.plugins.module_utils._core.weights.carry import NotStarted, carry


def test_a_carrier_that_ends_before_it_is_held_has_done_its_work(tmp_path):
    command = ["sh", "-c", f"head -c 1000000 /dev/urandom > {tmp_path}/shard"]
    assert carry(command, {"PATH": "/usr/bin:/bin"}, tmp_path, total=1000000, say=print, hold_mib_per_s=0.1) is None


def test_only_what_cannot_be_run_is_not_started(tmp_path, monkeypatch):
    monkeypatch.setattr(carrier, "SAY_S", 0)
    with pytest.raises(NotStarted, match="No such file"):
        carry([str(tmp_path / "absent")], {}, tmp_path, total=1, say=print)

    def full(text):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        carry(["sleep", "30"], {"PATH": "/usr/bin:/bin"}, tmp_path, total=1, say=full)
    assert not isinstance(caught.value, NotStarted)
