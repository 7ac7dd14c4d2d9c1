# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Engines in containers, with a stand-in podman that runs this interpreter for the image's; the story has the real one."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine import image as checks
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine import prune
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.container import install, make_plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.floors import Floors
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.image import ImageWanted, digest_of
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.podman import Podman
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.prune import absent, environments, uses
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import make_wheel

DIGEST = "d" * 64
IMAGE = f"registry.example/sglang@sha256:{DIGEST}"
STAND_IN = """#!{python}
import os, sys
words, here = sys.argv[1:], {here!r}
with open(here + "/calls", "a") as calls:
    calls.write(repr(words) + "\\n")
if words == ["--version"]:
    print("podman version {version}")
elif words[:2] == ["image", "exists"]:
    sys.exit(0 if os.path.exists(here + "/image") else 1)
elif words[0] == "info":
    print(here)
elif words[0] in ("pull", "load"):
    if os.path.exists(here + "/unreachable"):
        sys.exit("Error: initializing source: pinging container registry registry.example: connection refused")
    open(here + "/image", "w").close()
elif words[:2] == ["image", "rm"]:
    os.unlink(here + "/image")
elif words[0] == "run":
    code = words.index("-c")
    sys.argv = ["-c", *words[code + 2:]]
    sys.path.insert(0, here + "/site")
    exec(words[code + 1])
"""


@pytest.fixture
def podman(tmp_path):
    """A store without the image, whose image holds SGLang 9.9.9."""

    def make(*, version="5.4.2", metadata=(), files=None):
        here = tmp_path / "podman"
        here.mkdir(exist_ok=True)
        with zipfile.ZipFile(make_wheel(tmp_path / "house", metadata=metadata, files=files)) as wheel:
            wheel.extractall(here / "site")
        (here / "podman-system-generator").touch()
        program = here / "podman"
        program.write_text(STAND_IN.format(python=sys.executable, here=str(here), version=version))
        program.chmod(0o755)
        return Podman(str(program), ["--shm-size=64m"], [str(here)])

    return make


def want(tmp_path, **changes) -> ImageWanted:
    return ImageWanted(
        **{"version": "9.9.9", "image": IMAGE, "root": str(tmp_path / "engines"), "shm_mib": 64, "space_mib": 1, **changes}
    )


def calls(podman) -> str:
    return (Path(podman.program).parent / "calls").read_text()


@pytest.mark.parametrize(
    "image",
    ["registry.example/sglang:v0.5.23", f"registry.example/sglang:v0.5.23@sha256:{DIGEST}", "sglang@sha256:abc", "", "latest"],
)
def test_what_is_not_named_by_its_digest_alone_is_refused(image):
    with pytest.raises(InferopsError) as refused:
        digest_of(image)
    assert "skopeo inspect" in refused.value.details["do"]


def test_an_engine_is_brought_read_and_found_again(tmp_path, podman):
    program = podman()
    before = make_plan(want(tmp_path), program)
    assert (before.complete, before.as_dict()["source_root"]) == (False, "")
    plan, changed = install(want(tmp_path), 0, program)
    said = plan.as_dict()
    assert changed
    assert (Path(said["source_root"]) / "sglang" / "launch_server.py").is_file()
    assert said["launch"] == [sys.executable, "-m", "sglang.launch_server"]
    assert said["lock_sha256"] == DIGEST
    assert Path(said["dir"]).name == "9.9.9-dddddddddddd"
    assert "'--network=none'" in calls(program)
    assert install(want(tmp_path), 0, program)[1] is False


def test_an_image_that_was_tidied_away_is_fetched_again(tmp_path, podman):
    program = podman()
    install(want(tmp_path), 0, program)
    program.drop(IMAGE)
    plan, changed = install(want(tmp_path), 0, program)
    assert (plan.complete, changed) == (True, True)


@pytest.mark.parametrize(
    ("changes", "made", "word"),
    [
        ({}, {"version": "4.3.1"}, "quadlets need 4.4"),
        ({"devices": ["nvidia.com/gpu=all"], "cdi_dirs": ()}, {}, "nvidia-ctk cdi generate"),
        ({"shm_mib": 1 << 40}, {}, "lower sglang_engine_shm_mib"),
        ({"shm_mib": 1 << 40, "ipc": "host"}, {}, "/dev/shm of the host has"),
        ({"space_mib": 1 << 40}, {}, "sglang_engine_space_mib"),
        ({"archive": "/not/there.tar"}, {}, "/not/there.tar is not there"),
        ({"version": "9.9.8"}, {}, "it holds SGLang 9.9.9, not 9.9.8"),
        ({}, {"metadata": ("Requires-Dist: torch==2.0", "Requires-Dist: pytest<1")}, None),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(tmp_path, podman, changes, made, word):
    program = podman(**made)
    if word is None:
        plan, dummy = install(want(tmp_path, **changes), 0, program)
        assert any("pytest" in note for note in plan.as_dict()["notes"])
        return
    with pytest.raises(InferopsError) as refused:
        install(want(tmp_path, **changes), 0, program)
    assert word in str(refused.value)
    assert not (Path(program.program).parent / "image").exists()
    root = tmp_path / "engines"
    assert not root.exists() or [path.name for path in root.iterdir()] == [".lock"]


def test_a_registry_that_does_not_answer_is_told_in_its_own_words(tmp_path, podman):
    program = podman()
    (Path(program.program).parent / "unreachable").touch()
    with pytest.raises(InferopsError, match="connection refused"):
        install(want(tmp_path), 0, program)


def test_an_image_without_source_is_refused(tmp_path, podman):
    program = podman(files={"other.py": ""})
    with pytest.raises(InferopsError, match="source of SGLang is not in it"):
        install(want(tmp_path), 0, program)


@pytest.mark.parametrize(
    "text",
    [
        'cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n  containerEdits: {}\n- name: all\n',
        '{"cdiVersion": "0.6.0",\n "kind": "nvidia.com/gpu",\n "devices": [\n  {"name": "0"},\n  {"name": "all"}]}\n',
    ],
)
def test_devices_are_read_out_of_both_kinds_of_specification(tmp_path, text):
    (tmp_path / ("n.json" if text.startswith("{") else "n.yaml")).write_text(text)
    assert checks.cdi_devices([tmp_path, tmp_path / "none"]) == {"nvidia.com/gpu=0", "nvidia.com/gpu=all"}
    floors = Floors()
    wanted = ImageWanted("9.9.9", IMAGE, "/", devices=["nvidia.com/gpu=all", "/dev/fuse"], cdi_dirs=[str(tmp_path)])
    checks.check_devices(floors, wanted)
    assert floors.problems == []
    checks.check_devices(floors, ImageWanted("9.9.9", IMAGE, "/", devices=["nvidia.com/gpu=7"], cdi_dirs=[str(tmp_path)]))
    assert "there are nvidia.com/gpu=0" in floors.problems[0][0]


def test_an_engine_in_a_container_is_pruned_by_the_same_policy(tmp_path, podman, monkeypatch):
    program = podman()
    plan, dummy = install(want(tmp_path), 0, program)
    folder = plan.wanted.folder
    assert environments(folder.parent) == [folder]
    quadlets = tmp_path / "quadlets"
    quadlets.mkdir()
    (quadlets / "sglang-kimi.container").write_text(f"# Engine: {folder}/\n")
    assert [use.by for use in uses(folder, tmp_path, [quadlets], tmp_path / "proc")] == ["unit sglang-kimi.container"]
    with pytest.raises(InferopsError, match="needed"):
        absent(folder, tmp_path, [quadlets], 0, dry=False)
    monkeypatch.setenv("PATH", str(Path(program.program).parent), prepend=os.pathsep)
    monkeypatch.setattr(prune, "CACHES", tmp_path / "caches")
    for name in (folder.name, f"{folder.name}-card", "9.9.9-other"):
        (tmp_path / "caches" / name).mkdir(parents=True)
    assert absent(folder, tmp_path, [], 0, dry=False)
    assert [path.name for path in (tmp_path / "caches").iterdir()] == ["9.9.9-other"]
    assert not folder.exists()
    assert not (Path(program.program).parent / "image").exists()
