"""What the machine lacks is said in one message with the command that helps."""

from __future__ import annotations

import os
import shutil
import socket
import sys

import pytest
from _core.errors import InferopsError
from inferops_demo import stage
from inferops_lab import environment, hosts, machine, runtime


def test_a_taken_port_is_named_with_a_way_out():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InferopsError) as refused:
            stage.check_port(port)
    assert str(port) in refused.value.what
    assert f"INFEROPS_DEMO_PORT={port + 1}" in refused.value.details["do"]


def test_a_free_port_is_fine():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    stage.check_port(port)


def test_a_full_disk_is_named_with_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path))
    free_gib = shutil.disk_usage(tmp_path).free / 2**30
    machine.check_disk(free_gib / 2)
    with pytest.raises(InferopsError, match="are needed") as refused:
        machine.check_disk(free_gib * 2 + 1)
    assert "INFEROPS_CACHE" in refused.value.details["do"]


def test_without_root_nothing_starts(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InferopsError, match="root") as refused:
        machine.check_root()
    assert "sudo tools/demo" in refused.value.details["do"]


def test_a_python_without_venv_is_refused_with_the_package(tmp_path):
    stub = tmp_path / "python3"
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    with pytest.raises(InferopsError) as refused:
        environment.check_venv(str(stub))
    assert "python3-venv" in refused.value.details["do"]
    environment.check_venv(sys.executable)


def test_a_clone_that_everybody_can_write_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    stage.refuse_open_clone(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(InferopsError, match="ansible\\.cfg"):
        stage.refuse_open_clone(tmp_path)


def test_missing_programs_without_apt_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(InferopsError, match="no apt-get") as refused:
        machine.install(["podman"])
    assert "podman" in refused.value.details["where"]


def test_the_first_call_of_containers_installs_what_is_missing(monkeypatch, tmp_path):
    """A story begins by removing the hosts of the last one, on a machine that has never had any."""
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path))
    asked: list[str] = []

    def install(packages: list[str]) -> None:
        asked.extend(packages)
        raise InferopsError("no package source here")

    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(machine, "install", install)
    runtime.podman.cache_clear()
    with pytest.raises(InferopsError, match="no package source"):
        hosts.down(["gone"])
    assert {"podman", "runc"} <= set(asked)
