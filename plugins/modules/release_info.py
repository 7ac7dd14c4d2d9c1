#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tell what is promoted, what serves and what the last attempt did."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_info
short_description: Tell what is promoted on a host, what serves, and how the last attempt went
version_added: 0.1.0
author: [Inferops (@inferops)]
description: Reads the records of an instance and asks systemd; changes nothing.
extends_documentation_fragment: [inferops.sglang.release_records]
attributes:
  check_mode:
    description: The same as without.
    support: full
  diff_mode:
    description: Nothing changes, so there is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Release | Ask what serves
  inferops.sglang.release_info:
    instance: kimi
  register: kimi
"""

RETURN = r"""
release_info:
  description: >-
    C(promoted), C(previous), C(serving_unit), C(main_pid), C(admitted), C(releases), C(gate) (of the promoted release, with
    C(age_s)), C(figures) (what that gate saw, for alerts), C(history) (the last 20
    events), C(attempt) (the last one, with C(outcome), C(message), C(reasons)), C(attempt_running), C(phase), C(runner).
  returned: always
  type: dict
text:
  description: The same as a few lines.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.release import info
from ..module_utils._core.release.host_real import RealHost
from ..module_utils._core.release.store import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "state_dir": {"type": "path", "default": "/var/lib/inferops"},
            "unit_dir": {"type": "path", "default": "/etc/systemd/system"},
        },
        supports_check_mode=True,
    )
    p = module.params
    host = RealHost()
    try:
        state = info.describe(host, Store(host, p["instance"], p["state_dir"], p["unit_dir"]))
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, release_info=state, text=info.text(state))


if __name__ == "__main__":
    main()
