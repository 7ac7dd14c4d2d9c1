# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prometheus rules out of what was promoted."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.observe import rules
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def alert_rules(targets, thresholds=None, runbook=""):
    """Return the content of a rules file."""
    try:
        return rules.alert_rules(targets, thresholds or {}, runbook)
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict:
        return {"alert_rules": alert_rules}
