"""Two real releases side by side; every refusal names its reason and leaves nothing; what runs is never removed."""

import json
import re

import pytest


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("too_old", r"/usr/local/bin/python3\.10 is Python 3\.10\.12, >=3\.11 is needed \[METADATA of sglang-0\.5\.23"),
        ("read_only", r"the file system of /mnt/readonly is mounted read-only"),
        ("no_space", r"/mnt/small has 6\d MiB free, 1\d\d MiB are needed"),
        ("no_space", r"nothing was downloaded or changed"),
        ("full_disk", r"no space left on device: /mnt/small has \d+ MiB free"),
        ("changed_wheel", r"sglang.* is not the file that the lock names \(hash mismatch\)"),
        ("changed_wheel_pip", r"sglang.* is not the file that the lock names \(hash mismatch\)"),
        ("old_driver", r"driver 570\.86 is loaded, CUDA 13 needs 580"),
        ("old_driver", r"the lock was resolved for Python 3\.12"),
        ("in_use", r"needed and was not removed"),
        ("in_use", r"why: +(?:unit older\.service, )?process \d+"),
        ("cut_index", r"the package index cannot be reached"),
    ],
)
def test_the_message_names(kept, name, says):
    """R92: what is said of a release is read from its own files."""
    assert re.search(says, (kept / f"{name}.log").read_text())


def test_a_refusal_leaves_nothing(kept):
    assert re.findall(r"0\.5\S*", (kept / "left.txt").read_text()) == []


def test_the_second_run_changes_nothing(kept):
    for name in ("again", "cut_again"):
        assert "changed=0" in (kept / f"{name}.log").read_text()


def test_both_releases_are_there_whole_and_started_by_what_they_have(host, kept):
    for version, installer in (("0.5.12", "pip"), ("0.5.23", "uv")):
        (folder,) = [path for path in host.check_output("ls -d /opt/inferops/engines/*").split() if f"/{version}-" in path]
        mark = json.loads(host.file(f"{folder}/.inferops-complete").content_string)
        assert (mark["version"], mark["installer"]) == (version, installer)
        assert host.check_output(f"head -1 {folder}/bin/sglang") == f"#!{folder}/bin/python"
        assert host.file(f"{folder}/lib/python3.11/site-packages/sglang/launch_server.py").exists
        found = host.check_output(f"{folder}/bin/python -c 'import importlib.metadata as m; print(m.version(\"sglang\"))'")
        assert found == version


def test_an_interrupted_installation_is_no_environment_and_two_plays_heal_it_once(kept):
    names = (kept / "interrupted.txt").read_text().split()
    assert len([name for name in names if name.startswith("0.5.23-")]) == 1
    assert len([name for name in names if name.endswith(".partial")]) == 1
    assert sorted(re.findall(r"changed=(\d+)", (kept / "two_at_once.log").read_text())) == ["0", "1"]


def test_pruning_leaves_what_runs_and_what_was_asked_for(host, kept):
    assert "changed=1" in (kept / "prune.log").read_text()
    left = sorted(name.partition("-")[0] for name in host.check_output("ls -A /opt/inferops/engines").split())
    assert left == [".lock", "0.5.12", "0.5.23"]
    assert host.service("older").is_running


def test_a_host_without_a_network_and_with_a_python_too_old_installs_from_a_bundle(host, kept):
    """The bundle is whole: wheels of engine and tools, a Python, the collection, the lock, checksums and a bill of materials."""
    assert host.check_output("ip route show default") == ""
    there = host.check_output("cd /srv/bundle && sha256sum --quiet -c SHA256SUMS && find . -type f").split()
    bill = json.loads(host.file("/srv/bundle/sbom.cdx.json").content_string)
    named = {part["name"] for part in bill["components"]}
    assert {"sglang", "requests", "nvidia-ml-py", "python.tar.gz", "inferops.sglang"} <= named
    assert len(named) + 3 == len(there)  # lock, checksums and the bill itself
    (folder,) = host.check_output("ls -d /opt/cut/0.5.23-*").split()
    prefix = host.check_output(f"{folder}/bin/python -c 'import sys; print(sys.base_prefix)'")
    assert prefix.startswith("/opt/cut/.python/")
    found = host.check_output(f"{folder}/bin/python -c 'import importlib.metadata as m; print(m.version(\"sglang\"))'")
    assert found == "0.5.23"
    assert "/usr/local/bin/python3.10 is Python 3.10.12" in host.file(f"{folder}/.inferops-complete").content_string
    assert "changed=1" in (kept / "cut.log").read_text()
