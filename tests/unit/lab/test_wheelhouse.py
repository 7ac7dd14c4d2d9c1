"""The wheelhouse is that of the hosts' Python, whatever Python fills it."""

from __future__ import annotations

import re

from inferops_demo import stage
from inferops_lab import hosts, wheelhouse


def test_a_line_counts_whatever_python_downloads_it():
    hashed = " \\\n    --hash=sha256:00\n"
    lock = f"one==1.0 ; python_full_version < '3.13'{hashed}two==2{hashed}three==3;sys_platform == 'x'\n"
    assert wheelhouse.without_markers(lock) == f"one==1.0{hashed}two==2{hashed}three==3 \n"


def test_no_line_of_the_real_locks_keeps_a_marker_or_gets_lost():
    for path in (wheelhouse.TOOLS_LOCK, wheelhouse.ROUTER_LOCK, wheelhouse.EXTRA_LOCK, wheelhouse.CPU_LOCK):
        text = path.read_text()
        asked = wheelhouse.without_markers(text)
        named = re.findall(r"^([\w.-]+==[^\s;]+)", text, re.M)
        assert named == re.findall(r"^([\w.-]+==\S+)", asked, re.M)
        assert not re.findall(r"^[\w.-]+==.*;", asked, re.M)


def test_the_demo_says_beforehand_what_has_to_be_downloaded(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path))
    lock, house = tmp_path / "engine-cpu.lock", wheelhouse.cache("wheelhouse-cpu")
    lock.write_text("one==1.0 --hash=sha256:00\n")
    house.mkdir()
    monkeypatch.setattr(wheelhouse, "CPU_LOCK", lock)
    stage.say_what_it_takes()
    (house / "one-1.0-py3-none-any.whl").touch()
    wheelhouse._marker(lock).write_text("one-1.0-py3-none-any.whl")
    stage.say_what_it_takes()
    first, second = capsys.readouterr().err.splitlines()
    assert "downloads 700 MB" in first and "minutes" in first and "here already" in second
    lock.write_text("one==1.1 --hash=sha256:01\n")
    assert not wheelhouse.holds_cpu()


def test_a_site_may_install_something_else_than_the_simulation(monkeypatch, tmp_path):
    """What the lab tells of installing is weaker than a site's group_vars; how to reach a host is the host's."""
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path))
    monkeypatch.setattr(hosts, "address", lambda _name: "10.0.0.9")
    monkeypatch.setattr(hosts, "public_key", lambda: tmp_path / "key.pub")
    group = hosts.inventory(["demo"])["sglang"]
    assert set(group["vars"]) == {
        "sglang_engine_lock",
        "sglang_engine_wheelhouse",
        "sglang_engine_compile",
        "sglang_release_tools_wheelhouse",
    }
    assert not any(name.startswith("sglang_") for name in group["hosts"]["demo"])
