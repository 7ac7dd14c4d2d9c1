# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Role sglang_engine on a fleet: releases of their own side by side, a host that cannot is named, the others go on."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile

import playing
import pytest

pytestmark = playing.in_a_clone
PLAY = [{"hosts": "all", "gather_facts": False, "roles": ["inferops.sglang.sglang_engine"]}]
OLD, NEW = "9.9.8", "9.9.9"


def make_release(folder, version):
    """Write a wheel of SGLang and a lock that pins it."""
    wheel = folder / "house" / f"sglang-{version}-py3-none-any.whl"
    wheel.parent.mkdir(exist_ok=True)
    info = f"sglang-{version}.dist-info"
    files = {
        "sglang/launch_server.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    (folder / f"{version}.lock").write_text(f"sglang=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")


@pytest.fixture
def play(tmp_path):
    """Return a function that plays the role on hosts of this machine, each with a folder of its own."""
    for version in (OLD, NEW):
        make_release(tmp_path, version)
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "sglang_engine_python": sys.executable,
        "sglang_engine_pip_python": sys.executable,
        "sglang_engine_installer": "pip",
        "sglang_engine_compile": False,
        "sglang_engine_lock": f"{tmp_path}/{{{{ sglang_engine_version }}}}.lock",
        "sglang_engine_wheelhouse": f"{tmp_path}/house",
        "sglang_engine_root": f"{tmp_path}/{{{{ inventory_hostname }}}}",
        "sglang_engine_state_dir": f"{tmp_path}/state",
    }

    def run(hosts, **changed):
        (tmp_path / "play.json").write_text(json.dumps(PLAY))
        (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": {**common, **changed}}}))
        done = playing.ansible_playbook(tmp_path / "play.json", "-i", tmp_path / "hosts.json", "-f", "4")
        found = re.findall(r"(\S+) +: ok=.*changed=(\d+).*failed=(\d+)", done.stdout)
        return done.stdout, {host: (int(changed), int(failed)) for host, changed, failed in found}

    return run


def test_releases_lie_side_by_side_and_a_host_that_cannot_keeps_nobody(play, tmp_path):
    """The canary has both, the rest of the fleet stays, one has no room for it."""

    def there(host):
        return sorted(path.name.partition("-")[0] for path in (tmp_path / host).glob("9*"))

    told, done = play({"h1": {}}, sglang_engine_version=OLD)
    assert done == {"h1": (1, 0)}, told
    full = {"sglang_engine_version": NEW, "sglang_engine_space_mib": 10**9}
    told, done = play({"h0": full, "h1": {"sglang_engine_version": NEW}, "h2": {}}, sglang_engine_version=OLD)
    assert done == {"h0": (0, 1), "h1": (1, 0), "h2": (1, 0)}, told
    assert f"SGLang {NEW} cannot be installed here" in told and "MiB free" in told
    assert [there(host) for host in ("h0", "h1", "h2")] == [[], [OLD, NEW], [OLD]]
    for folder in (tmp_path / "h1").glob("9*"):
        (module,) = folder.glob("lib/python*/site-packages/sglang/launch_server.py")
        assert module.read_text() == f"VERSION = '{folder.name.partition('-')[0]}'\n"
