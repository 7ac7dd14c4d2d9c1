# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions, markers and tags as the packaging library judges them, which is no part of a host."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.lock import read_lock
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.requirements import (
    marker_holds,
    parse_requirement,
    satisfies,
    version_key,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.wheels import (
    Target,
    metadata_fields,
    misfit,
    parse_wheel,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import LINUX
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.version import Version

VERSIONS = [
    "0.9",
    "1.0",
    "1.0.0",
    "1.0.dev1",
    "1.0a1",
    "1.0rc1",
    "1.0.post1",
    "1.0.1",
    "1.1",
    "2.0+cu130",
    "2.0",
    "0.5.11.post1",
    "1!0.1",
]
SPECIFIERS = [
    "==1.0",
    "==1.0.*",
    "!=1.0.*",
    ">=1.0",
    ">1.0",
    "<1.1,>=1.0",
    "<=1.0",
    "~=1.0",
    "~=1.0.0",
    "!=1.0",
    "==2.0",
    "==2.0+cu130",
    "",
]


@pytest.mark.parametrize(("version", "specifier"), list(itertools.product(VERSIONS, SPECIFIERS)))
def test_a_specifier_allows_what_packaging_says(version, specifier):
    if specifier.startswith("<1.1") and Version(version).is_prerelease:
        return
    assert satisfies(version, specifier) == SpecifierSet(specifier).contains(version, prereleases=True)


def test_versions_sort_as_packaging_sorts_them():
    public = [version for version in VERSIONS if "+" not in version]
    assert sorted(public, key=version_key) == sorted(public, key=Version)


MARKERS = [
    'sys_platform == "linux" and (platform_machine == "aarch64" or platform_machine == "arm64")',
    'sys_platform != "linux" or (sys_platform == "linux" and platform_machine != "aarch64")',
    "python_version < '3.12'",
    "python_full_version >= '3.12.1' and python_version != '3.9'",
    "platform_machine in 'x86_64 aarch64'",
    "implementation_name == 'pypy'",
]


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_holds_where_packaging_says_so(marker):
    assert marker_holds(marker, LINUX) == Marker(marker).evaluate(LINUX)


@pytest.mark.parametrize("marker", ["python_version ~= '3.12'", "os.name == 'posix'", "nonsense ==", "unheard == 'of'"])
def test_what_is_not_understood_is_none(marker):
    assert marker_holds(marker, LINUX) is None


@pytest.mark.parametrize("version", ["0.5.9", "0.5.12", "0.5.23"])
def test_the_requirements_of_published_releases_are_read_as_packaging_reads_them(wheel, version):
    lines = parse_wheel(wheel(version)).metadata["requires-dist"]
    for line in lines:
        mine, theirs = parse_requirement(line), Requirement(line)
        assert mine.name == theirs.name.lower().replace("_", "-")
        assert SpecifierSet(mine.specifier) == theirs.specifier
        assert mine.wanted(LINUX) == (theirs.marker is None or theirs.marker.evaluate({**LINUX, "extra": ""})), line


TAGS = [
    "py3-none-any",
    "py2.py3-none-any",
    "cp312-cp312-manylinux_2_34_x86_64",
    "cp312-cp312-manylinux_2_40_x86_64",
    "cp312-cp312-manylinux_2_17_aarch64",
    "cp311-cp311-manylinux2014_x86_64",
    "cp39-abi3-manylinux_2_28_x86_64",
    "cp313-abi3-manylinux_2_28_x86_64",
    "cp312-none-manylinux1_x86_64",
    "cp312-cp312-manylinux2014_x86_64.manylinux_2_40_x86_64",
    "py3-none-manylinux2014_x86_64",
    "py313-none-any",
    "cp312-cp312t-manylinux_2_17_x86_64",
    "cp312-cp312-macosx_11_0_arm64",
    "cp312-cp312-musllinux_1_2_x86_64",
]


@pytest.mark.parametrize("tag", TAGS)
def test_a_wheel_fits_where_packaging_says_so(tag):
    target = Target((3, 12), "x86_64", (2, 36))
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    supported = {*cpython_tags((3, 12), ["cp312"], platforms), *compatible_tags((3, 12), "cp312", platforms)}
    pythons, abis, places = (part.split(".") for part in tag.split("-"))
    fits = any(Tag(*combination) in supported for combination in itertools.product(pythons, abis, places))
    assert (misfit(parse_wheel(Path(f"a-1-{tag}.whl")), target) is None) == fits


def test_a_lock_says_what_it_was_resolved_for(request):
    text = (request.config.rootpath / "roles/sglang_engine/files/locks/sglang-0.5.23-py312-x86_64.lock").read_text()
    lock = read_lock(text, "0.5.23", "lock")
    assert (lock.python, lock.machine, lock.glibc, lock.version("torch")) == ("3.12", "x86_64", (2, 35), "2.14.1")
    assert len(lock.pins) == 207


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("sglang==1.0", "has no hashes"),
        ("sglang==2.0 --hash=sha256:aa", "pins sglang==2.0"),
        ("torch==1.0 --hash=sha256:aa", "pins no sglang"),
    ],
)
def test_a_lock_of_something_else_is_refused(text, says):
    with pytest.raises(InferopsError) as refused:
        read_lock(text, "1.0", "some.lock")
    assert says in str(refused.value)
    assert "some.lock" in str(refused.value)


def test_pins_are_read_with_their_markers():
    text = "\n".join(
        [
            "sglang==1.0 \\",
            "    --hash=sha256:aa",
            "av==16.1.0 ; platform_machine == 'aarch64' \\",
            "    --hash=sha256:bb",
            "x[y]==1 ; python_version < '3.0' --hash=sha256:cc",
        ]
    )
    lock = read_lock(text, "1.0", "lock")
    assert [(pin.name, pin.version, pin.counts(LINUX)) for pin in lock.pins] == [
        ("sglang", "1.0", True),
        ("av", "16.1.0", False),
        ("x", "1", False),
    ]


def test_metadata_is_read_by_field():
    assert metadata_fields("Name: a\nRequires-Dist: b\nRequires-Dist: c\n\nRequires-Dist: in the text\n")["requires-dist"] == [
        "b",
        "c",
    ]
