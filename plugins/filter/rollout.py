# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The order of a rolling upgrade."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.fleet import rollout as core
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def rollout(hosts, serves, canary=None, batch=1, min_serving_ratio=0.0):
    """Return hosts in their order, the batches for serial, and the plan as text."""
    known = dict(zip(hosts, serves, strict=True))
    try:
        plan = core.rollout(known, canary=canary or None, batch=batch, min_serving_ratio=float(min_serving_ratio))
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None
    return {"hosts": list(plan.hosts), "serial": list(plan.serial), "lowest": plan.lowest, "text": plan.text}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict:
        return {"rollout": rollout}
