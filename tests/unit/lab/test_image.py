"""The package sources of a host come from those of the machine, whatever their form."""

from __future__ import annotations

import pytest
from _core.errors import InferopsError
from inferops_lab.image import apt_sources

DEB822 = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/k.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""


def test_deb822_sources_are_used_for_another_suite(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "other.list").write_text("deb https://tools.example/apt stable main\n")
    assert apt_sources("trixie", folder=tmp_path).splitlines() == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main",
    ]


def test_one_line_sources_with_options(tmp_path):
    (tmp_path / "sources.list").write_text(
        "# deb http://old.example/debian bookworm main\ndeb [arch=amd64] http://m.example/debian/ bookworm main\n"
    )
    assert apt_sources("bookworm", folder=tmp_path).splitlines()[0] == "deb http://m.example/debian bookworm main"


def test_a_machine_without_debian_sources_is_refused(tmp_path):
    (tmp_path / "sources.list").write_text("deb http://m.example/ubuntu noble main\n")
    with pytest.raises(InferopsError, match="no Debian mirror"):
        apt_sources("bookworm", folder=tmp_path)
