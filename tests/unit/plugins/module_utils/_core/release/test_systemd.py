"""Quoting for unit files can be undone, and what systemd reads is what was meant."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import systemd
from hypothesis import example, given
from hypothesis import strategies as st

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30), max_size=6)


@given(WORDS, st.booleans())
@example(["", " ", "%i", "$HOME", "${X}", "a'b", 'a"b', "\\", "\\n", "\n", "\x1b", ";", "ä", "\x85", "\u2028"], True)
def test_quoting_can_be_undone(words, exec_line):
    assert systemd.unquote(systemd.quote(words, exec_line=exec_line), exec_line=exec_line) == words


@given(WORDS)
def test_a_quoted_line_stays_one_line(words):
    line = systemd.quote(words)
    assert "\n" not in line
    assert systemd.setting(f"[Service]\nExecStart={line}\nType=notify\n", "ExecStart") == [line]


def test_json_word_is_kept():
    word = '{"decode": {"backend": "full"}, "share": "50%", "cost": "$5"}'
    assert (
        systemd.quote_word(word)
        == '"{\\"decode\\": {\\"backend\\": \\"full\\"}, \\"share\\": \\"50%%\\", \\"cost\\": \\"$$5\\"}"'
    )


@pytest.mark.parametrize("line", ["%i", "$HOME", '"open', "a\\qb", "'open"])
def test_what_systemd_would_replace_or_refuse_is_not_taken_as_literal(line):
    with pytest.raises(InferopsError):
        systemd.unquote(line)


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_words_no_process_can_be_given_are_refused(word):
    with pytest.raises(InferopsError):
        systemd.quote_word(word)


def test_install_section_is_left_out():
    text = "[Unit]\nA=1\n[Install]\nWantedBy=x\n[Service]\nB=2\n"
    assert systemd.without_section(text, "Install") == "[Unit]\nA=1\n[Service]\nB=2\n"
