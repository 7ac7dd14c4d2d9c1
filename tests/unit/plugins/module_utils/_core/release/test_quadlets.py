# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Releases in containers: the same transaction, with a quadlet where the unit was, and the way between the two kinds."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.notify import Notifier
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.runner import ensure_admitted
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec

from .releases import IMAGE, ask, deploy, new_host, quadlet_dict, run_attempt, spec_dict
from .simulated_host import Crash

UNIT, QUADLET = "/etc/systemd/system/sglang-kimi.service", "/etc/containers/systemd/sglang-kimi.container"
KINDS = {"unit": spec_dict, "quadlet": quadlet_dict}


def test_a_release_in_a_container_is_promoted_and_boots():
    host, store = new_host()
    assert deploy(host, store, quadlet_dict()) == "promoted"
    release = store.pointer("promoted")
    assert UNIT not in host.files
    assert host.files[QUADLET] == host.files[f"/var/lib/inferops/kimi/releases/{release}/unit"]
    candidate = host.files[f"/etc/containers/systemd/sglang-kimi-{release}.container"]
    assert "Conflicts=sglang-kimi.service" in candidate
    assert "WantedBy" not in candidate
    assert ask(host, store, quadlet_dict())["changed"] is False
    host.reboot()
    ensure_admitted(host, store, lambda text: None)
    assert host.serving() == ["sglang-kimi.service"]


@pytest.mark.parametrize(("first", "second"), [("unit", "quadlet"), ("quadlet", "unit"), ("quadlet", "quadlet")])
def test_there_and_back_between_the_kinds(first, second):
    host, store = new_host()
    assert deploy(host, store, KINDS[first](4)) == "promoted"
    before = store.promoted_text()
    assert deploy(host, store, KINDS[second](8), replace=True) == "promoted"
    assert (UNIT in host.files, QUADLET in host.files) == (second == "unit", second == "quadlet")
    assert ("sglang-kimi.service" in host.enabled) == (second == "unit")
    assert deploy(host, store, None) == "promoted"
    assert store.promoted_text() == before
    assert (UNIT in host.files, QUADLET in host.files) == (first == "unit", first == "quadlet")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("first", "second"), [("unit", "quadlet"), ("quadlet", "unit")])
def test_power_loss_at_any_step_between_the_kinds_leaves_one_of_the_two(first, second, after):
    for step in range(1, 80):
        host, store = new_host()
        deploy(host, store, KINDS[first](4))
        old = store.pointer("promoted")
        new = ReleaseSpec.from_dict(KINDS[second](8)).id
        assert ask(host, store, KINDS[second](8), replace=True)["outcome"] == "submitted"
        host.effects, host.crash_at, host.crash_after = 0, step, after
        try:
            run_attempt(host, store)
            assert step > 10
            return
        except Crash:
            host.crash_at = None
        host.reboot()
        outcome = run_attempt(host, store)
        serves = {"promoted": new, "rolled_back": old}[outcome]
        assert store.pointer("promoted") == serves
        assert store.committed(serves)
        assert (UNIT in host.files) != (QUADLET in host.files)
    raise AssertionError("the transaction has more steps than were tried")


def test_a_first_container_that_fails_leaves_nothing_that_boots():
    host, store = new_host()
    host.verdicts = ["fail"]
    assert deploy(host, store, quadlet_dict()) == "stopped"
    assert QUADLET not in host.files
    host.reboot()
    assert host.serving() == []


def test_the_id_covers_the_digest_of_the_image():
    other = quadlet_dict()
    other["engine"] = {**other["engine"], "lock_sha256": "e" * 64}
    assert ReleaseSpec.from_dict(other).id != ReleaseSpec.from_dict(quadlet_dict()).id


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (f"Image={IMAGE}", "Image=registry.example/sglang:latest", "Image="),
        ("Notify=true", "Notify=false", "spec.unit"),
        ("--pp-async-batch-depth 8", "--pp-async-batch-depth 4", "Exec= word"),
    ],
)
def test_a_quadlet_that_starts_something_else_is_refused(old, new, where):
    host, store = new_host()
    spec = quadlet_dict()
    assert old in spec["unit"]
    with pytest.raises(InferopsError) as refused:
        ask(host, store, {**spec, "unit": spec["unit"].replace(old, new)})
    assert where in str(refused.value)


@pytest.mark.parametrize("image", ["registry.example/sglang:v0.5.23", "sha256:" + "d" * 64, "", None])
def test_an_image_without_a_digest_is_refused(image):
    spec = quadlet_dict()
    engine = {**spec["engine"], "container": {"image": image}}
    with pytest.raises(InferopsError, match="by its digest"):
        ReleaseSpec.from_dict({**spec, "engine": engine})


def test_systemd_and_the_runtime_are_both_told(tmp_path):
    ends = []
    for name in ("systemd", "runtime"):
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        end.bind(str(tmp_path / name))
        end.settimeout(5)
        ends.append(end)
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "runtime"), "INFEROPS_NOTIFY_SOCKET": str(tmp_path / "systemd")})
    notifier.ready("generates")
    assert [end.recv(100) for end in ends] == [b"READY=1\nSTATUS=generates"] * 2
    for end in ends:
        end.close()
