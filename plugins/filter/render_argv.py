# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter render_argv: from a mapping keyed by SGLang's field names to a list of launch words."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.render import render_argv as render
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def render_argv(args, source_root=None):
    """Return argv; with source_root spelled and checked for the release whose source lies there on the controller."""
    if not hasattr(args, "items"):
        raise AnsibleFilterError(f"render_argv takes a mapping of field names to values, not {type(args).__name__}")
    try:
        table = read_flags(open_source(source_root)) if source_root else None
        return render(dict(args), table)
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None


class FilterModule:
    """Filter render_argv."""

    def filters(self):
        return {"render_argv": render_argv}
