# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters over the pure functions that turn a profile into launch arguments, start limits and a gate plan."""

from __future__ import annotations

import functools

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.hosts_table import hosts_table
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.profile import known_facts, launch_args, launch_argv
from ansible_collections.inferops.sglang.plugins.module_utils._core.start_limits import start_limits
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def _refusing(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except InferopsError as exc:
            raise refusal(exc, AnsibleFilterError) from None

    return call


def gate_plan(plan):
    """Return the plan with every default filled in; refuse an unknown key or limit by name."""
    return GatePlan.from_dict(plan).as_dict()


def gate_table(answers, hosts):
    """Return one table of what throughput_gate said on several hosts."""
    return "\n".join(hosts_table(dict(zip(hosts, answers, strict=True))))


class FilterModule:
    """Filters gate_plan, gate_table, known_facts, launch_args, launch_argv and start_limits."""

    def filters(self):
        functions = (gate_plan, gate_table, known_facts, launch_args, launch_argv, start_limits)
        return {function.__name__: _refusing(function) for function in functions}
