# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""deploy.yml says what is missing on the control node, without the collection that is missing (R83, R88, R89)."""

from __future__ import annotations

import re
import shutil

import playing
import pytest

pytestmark = playing.in_a_clone


@pytest.fixture
def clone(tmp_path):
    """A clone under a folder name of its own, with what deploy.yml and the collection need."""
    root = tmp_path / "anywhere at all"
    root.mkdir()
    for name in ("plugins", "roles", "playbooks", "meta"):
        shutil.copytree(playing.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("deploy.yml", "galaxy.yml", "ansible.cfg"):
        shutil.copy(playing.ROOT / name, root / name)
    link = root / ".collections" / "ansible_collections" / "inferops" / "sglang"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../")
    (root / "hosts").write_text("[sglang]\nunreachable.invalid\n")
    root.chmod(0o755)
    return root


def play(clone, *words, **env):
    asked = ["deploy.yml", "-i", "hosts", "-e", "ansible_ssh_common_args='-o ConnectTimeout=1'", *words]
    return playing.ansible_playbook(*asked, cwd=clone, timeout=120, **{"HOME": str(clone.parent), **env})


def test_r89_a_clone_under_any_name_finds_its_own_collection(clone):
    done = play(clone)
    assert "cannot be loaded" not in done.stdout
    assert "PLAY [Deploy a gated SGLang server]" in done.stdout


def test_an_installed_collection_finds_itself(clone):
    installed = clone.parent / "ansible_collections" / "inferops" / "sglang"
    shutil.copytree(clone, installed, ignore=shutil.ignore_patterns(".collections", "galaxy.yml"))
    (installed / "MANIFEST.json").write_text('{"collection_info": {"version": "0.1.0"}}')
    assert "PLAY [Deploy a gated SGLang server]" in play(installed).stdout


def test_r83_a_collection_that_cannot_be_found_is_named_before_any_host_is_asked(clone):
    done = play(clone, ANSIBLE_COLLECTIONS_PATH=str(clone.parent / "nowhere"))
    assert done.returncode != 0
    assert "the collection inferops.sglang cannot be loaded" in done.stdout + done.stderr
    assert "PLAY [Deploy a gated SGLang server]" not in done.stdout


def test_r88_an_ansible_core_that_is_too_old_is_named_with_what_to_install(clone):
    done = play(clone, "-e", "min_core=99.1")
    assert done.returncode != 0 and "PLAY [Deploy" not in done.stdout
    assert (
        "is too old, 99.1 is needed" in done.stdout + done.stderr
        and "pip install 'ansible-core>=99.1'" in done.stdout + done.stderr
    )


def test_r88_one_least_ansible_core_everywhere():
    least = re.search(r'requires_ansible: ">=([\d.]+)"', (playing.ROOT / "meta/runtime.yml").read_text())[1]
    assert f'min_core: "{least.removesuffix(".0")}"' in (playing.ROOT / "deploy.yml").read_text()
    assert f"ansible-core>={least.removesuffix('.0')}" in (playing.ROOT / "examples/site/requirements.txt").read_text()


def test_r83_another_version_of_the_collection_is_refused(clone):
    other = clone.parent / "other" / "ansible_collections" / "inferops" / "sglang"
    shutil.copytree(clone, other, symlinks=True)
    galaxy = other / "galaxy.yml"
    galaxy.write_text(galaxy.read_text().replace("version: ", "version: 9", 1))
    done = play(clone, ANSIBLE_COLLECTIONS_PATH=str(clone.parent / "other"))
    assert "but the collection that is found first is version 9" in done.stdout + done.stderr
    assert "PLAY [Deploy a gated SGLang server]" not in done.stdout


def test_r89_a_clone_that_everyone_can_write_is_refused(clone):
    clone.chmod(0o777)
    done = play(clone)
    assert done.returncode != 0
    assert "everyone can write the folder of this clone" in done.stdout + done.stderr


def test_an_inventory_without_hosts_is_not_green(clone):
    (clone / "hosts").write_text("[sglang]\n")
    done = play(clone)
    assert done.returncode != 0
    assert "the inventory has no host in sglang" in done.stdout + done.stderr
