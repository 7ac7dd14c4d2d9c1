# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter awx_plan: what configure_awx.yml hands to the modules of awx.awx."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.awx import KINDS, plan
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def awx_plan(variables, existing=None, remove=False):
    """Return the plan for the objects in the variables controller_KIND; existing is a list of {kind, names}, or nothing."""
    objects = {kind: variables.get(f"controller_{kind}") or [] for kind in KINDS}
    names = None if existing is None else {entry["kind"]: entry["names"] for entry in existing}
    try:
        return {**plan(objects, names, remove=remove), "endpoints": KINDS}
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None


class FilterModule:
    """Filter awx_plan."""

    def filters(self):
        return {"awx_plan": awx_plan}
