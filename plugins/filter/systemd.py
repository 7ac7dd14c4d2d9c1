# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Quoting for unit files."""

from __future__ import annotations

from collections.abc import Iterable

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import systemd
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def systemd_quote(words: str | Iterable[str], context: str = "exec") -> str:
    """Return words quoted for ExecStart= (context exec) or Environment= (context environment)."""
    if context not in ("exec", "environment"):
        raise AnsibleFilterError(f"systemd_quote: context {context!r} is not exec or environment")
    given = [words] if isinstance(words, str) else list(words)
    for word in given:
        if not isinstance(word, str):
            raise AnsibleFilterError(f"systemd_quote: {word!r} is not a string; quote it in the inventory")
    try:
        return systemd.quote(given, exec_line=context == "exec")
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict:
        return {"systemd_quote": systemd_quote}
