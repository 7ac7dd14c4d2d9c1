"""The filter face of the quoting."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.filter.systemd import systemd_quote


def test_words_and_contexts():
    assert systemd_quote(["a", "$b c"]) == 'a "$$b c"'
    assert systemd_quote("X=$b c", "environment") == '"X=$b c"'


@pytest.mark.parametrize(("words", "context"), [([8], "exec"), (["a"], "shell"), (["a\0"], "exec")])
def test_what_cannot_be_quoted_is_refused(words, context):
    with pytest.raises(AnsibleFilterError):
        systemd_quote(words, context)
