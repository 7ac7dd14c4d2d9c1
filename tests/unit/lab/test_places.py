"""Keys of the cache: same inputs, same key; any change of name, order or content, another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inferops_lab.places import digest

TEXTS = st.lists(st.text(max_size=8), max_size=5)


@given(TEXTS, TEXTS)
def test_two_lists_share_a_key_only_when_they_are_the_same(one, other):
    assert (digest(one) == digest(other)) == (one == other)


def test_a_folder_counts_with_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = digest([tmp_path])
    (tmp_path / "a").rename(tmp_path / "b")
    renamed = digest([tmp_path])
    (tmp_path / "b").write_text("2")
    assert len({first, renamed, digest([tmp_path])}) == 3


@pytest.mark.parametrize("left", ["__pycache__", ".mypy_cache"])
def test_what_tools_leave_beside_sources_does_not_count(tmp_path, left):
    root = tmp_path / ".cache"  # where the folder itself lies does not matter
    root.mkdir()
    (root / "a.py").write_text("")
    before = digest([root])
    (root / left).mkdir()
    (root / left / "a").write_bytes(b"x")
    assert digest([root]) == before
    (root / "b.py").write_text("")
    assert digest([root]) != before
