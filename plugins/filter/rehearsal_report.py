# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter rehearsal_report: from the results of all hosts to one report in several formats and a verdict."""

from __future__ import annotations

import json

from ansible.errors import AnsibleFilterError
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rehearsal import Rehearsal
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.rehearsal_html import render_html
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.plugin_utils.refusal import refusal


def rehearsal_report(entries):
    """Return verdict, hosts, bad, text, json, junit, github and html of a list with one mapping per host."""
    try:
        rehearsal = Rehearsal.from_list(list(entries))
        return {
            "verdict": rehearsal.verdict,
            "hosts": len(rehearsal.hosts),
            "bad": rehearsal.bad,
            "text": rehearsal.text(),
            "json": json.dumps(rehearsal.as_dict(), indent=1, ensure_ascii=False) + "\n",
            "junit": rehearsal.junit(),
            "github": rehearsal.github(),
            "html": render_html(rehearsal),
        }
    except InferopsError as exc:
        raise refusal(exc, AnsibleFilterError) from None


class FilterModule:
    """Filter rehearsal_report."""

    def filters(self):
        return {"rehearsal_report": rehearsal_report}
