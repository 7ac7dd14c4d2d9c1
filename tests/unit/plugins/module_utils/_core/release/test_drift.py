"""Drift: nothing is found where nothing changed; each change by hand is found, told where it is, and told alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import drift_facts
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.drift import Facts, findings, unknown
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.drift_report import look
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.spec import ReleaseSpec

from .releases import LAUNCH, deploy, new_host, spec_dict
from .test_adopt import OLD, hand_written, take

PROMOTED = "/etc/systemd/system/sglang-kimi.service"
ARGV = spec_dict(8)["argv"]


@pytest.fixture
def env(tmp_path):
    """An engine with a lock and a RECORD, and a model."""
    site = tmp_path / "engine/lib/python3.12/site-packages"
    info = site / "sglang-0.5.23.dist-info"
    info.mkdir(parents=True)
    (site / "sglang").mkdir()
    (site / "sglang/a.py").write_text("x = 1\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"sglang/a.py,sha256={digest},6\nsglang-0.5.23.dist-info/RECORD,,\n")
    (info / "METADATA").write_text("Name: sglang\nVersion: 0.5.23\n")
    (tmp_path / "engine/inferops.lock").write_text("sglang==0.5.23 \\\n    --hash=sha256:aa\nother==1.0 ; python_version < '3'\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"num_hidden_layers": 61}')
    (model / "m.safetensors").write_text("w")
    os.utime(model / "m.safetensors", (1, 1))
    return tmp_path


def serving(env, **changes):
    host, store = new_host()
    spec = spec_dict(8, **changes)
    spec["engine"] = {**spec["engine"], "site_packages": str(env / "engine/lib/python3.12/site-packages")}
    spec["model"] = {**spec["model"], "path": str(env / "model")}
    spec["gate_context"] = {"model_config": {"num_hidden_layers": 61}}
    assert deploy(host, store, spec) == "promoted"
    host.files[str(env / "model/config.json")] = (env / "model/config.json").read_text()
    unit = f"sglang-kimi-{store.pointer('promoted')}.service"
    host.files[f"/proc/{host.pids[unit]}/cmdline"] = "\0".join(["/t/python", "/t/inferops.pyz", "serve", "--", *LAUNCH, *ARGV])
    return host, store


def codes(host, store, **how):
    return [found["code"] for found in look(host, store, **how)["findings"]]


def test_what_serves_as_promoted_has_no_drift(env):
    host, store = serving(env)
    report = look(host, store)
    assert (report["drift"], report["findings"]) == (False, [])
    assert report["gate_age_s"] is not None and "as promoted" in report["text"]
    host.reboot()
    host.clock += 60
    host.files[f"/proc/{host.pids['sglang-kimi.service']}/cmdline"] = "\0".join([*LAUNCH, *ARGV])
    assert codes(host, store) == []
    edit_unit(host, store, env)
    assert codes(host, store) == ["DRIFT-UNIT"]


def edit_unit(host, store, env):
    host.files[PROMOTED] += "LimitNOFILE=1\n"


def edit_run_unit(host, store, env):
    host.files[PROMOTED.replace(".service", f"-{store.pointer('promoted')}.service")] += "Nice=1\n"


def remove_unit(host, store, env):
    name = PROMOTED.replace(".service", f"-{store.pointer('promoted')}.service")
    del host.files[name]


def other_flags(host, store, env):
    pid = host.pids[f"sglang-kimi-{store.pointer('promoted')}.service"]
    host.files[f"/proc/{pid}/cmdline"] += "\0--disable-cuda-graph"


def other_python(host, store, env):
    pid = host.pids[f"sglang-kimi-{store.pointer('promoted')}.service"]
    host.files[f"/proc/{pid}/cmdline"] = "\0".join(["/home/me/bin/python", *LAUNCH[1:], *ARGV])


def other_package(host, store, env):
    (env / "engine/lib/python3.12/site-packages/sglang-0.5.23.dist-info/METADATA").write_text("Name: sglang\nVersion: 0.5.22\n")


def edited_file(host, store, env):
    (env / "engine/lib/python3.12/site-packages/sglang/a.py").write_text("x = 2\n")


def removed_file(host, store, env):
    (env / "engine/lib/python3.12/site-packages/sglang/a.py").unlink()


def other_config(host, store, env):
    host.files[str(env / "model/config.json")] = '{"num_hidden_layers": 60}'


def newer_weights(host, store, env):
    os.utime(env / "model/m.safetensors", (host.clock + 9, host.clock + 9))


def drop_in(host, store, env):
    host.files["/usr/lib/systemd/system/service.d/10-of-the-distribution.conf"] = ""
    host.files[f"{PROMOTED}.d/mine.conf"] = "[Service]\nEnvironment=A=1\n"


def stopped(host, store, env):
    host.do_stop(f"sglang-kimi-{store.pointer('promoted')}.service")


def disabled(host, store, env):
    host.enabled.discard("sglang-kimi.service")


CHANGES = {
    edit_unit: "DRIFT-UNIT",
    edit_run_unit: "DRIFT-UNIT",
    remove_unit: "DRIFT-UNIT",
    other_flags: "DRIFT-ARGV",
    other_python: "DRIFT-LAUNCH",
    other_package: "DRIFT-PACKAGES",
    edited_file: "DRIFT-FILES",
    removed_file: "DRIFT-FILES",
    other_config: "DRIFT-CONFIG",
    newer_weights: "DRIFT-WEIGHTS",
    drop_in: "DRIFT-DROPIN",
    stopped: "DRIFT-DOWN",
    disabled: "DRIFT-BOOT",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_by_hand_is_told(env, change):
    host, store = serving(env)
    before = host.effects
    change(host, store, env)
    report = look(host, store)
    assert CHANGES[change] in [found["code"] for found in report["findings"]]
    assert len(report["findings"]) == 1
    for found in report["findings"]:
        assert all(found[key] for key in ("what", "where", "why", "do"))
        assert found["why"] in report["text"]
    assert host.effects == before


def test_an_old_gate_counts_when_asked_for(env):
    host, store = serving(env)
    host.clock += 10_000
    assert codes(host, store) == []
    assert codes(host, store, max_gate_age_s=5_000) == ["DRIFT-GATE"]


def test_another_driver_than_at_the_gate_is_told(env):
    host, store = serving(env)
    record = store.gate_record(store.pointer("promoted"))
    host.files[f"{record['folder']}/result.json"] = json.dumps({"context": {"driver_version": "580.95.05"}})
    spec = store.spec(store.pointer("promoted"))
    facts = drift_facts.read(host, store, spec)
    assert facts.driver_at_gate == "580.95.05"
    found = findings(spec, Facts("u", driver="580.126.09", driver_at_gate=facts.driver_at_gate))
    assert [one.code for one in found] == ["DRIFT-DRIVER"]


def test_what_could_not_be_read_is_said_and_is_no_drift():
    spec = ReleaseSpec.from_dict(spec_dict(8))
    facts = Facts("sglang-kimi.service")
    assert findings(spec, facts) == []
    assert {"files of the engine", "weights", "driver"} <= set(unknown(spec, facts))


def test_a_drop_in_and_an_unread_unit_are_told():
    spec = ReleaseSpec.from_dict(spec_dict(8))
    found = findings(spec, Facts("u", drop_ins=("/etc/systemd/system/u.d/mine.conf",), needs_reload=True))
    assert [one.code for one in found] == ["DRIFT-DROPIN", "DRIFT-RELOAD"]
    assert found[0].where.endswith("mine.conf")


def test_an_adopted_unit_is_held_against_what_was_adopted():
    host, store = hand_written()
    take(host, store)
    assert codes(host, store) == []
    host.files[f"/etc/systemd/system/{OLD}"] += "# mine\n"
    report = look(host, store)
    assert [(found["code"], found["where"]) for found in report["findings"]] == [("DRIFT-UNIT", OLD)]
    assert "sk-canary" not in report["text"]


def test_without_a_promoted_release_there_is_nothing_to_compare():
    host, store = new_host()
    with pytest.raises(InferopsError, match="nothing is promoted"):
        look(host, store)
