#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tell what of a promoted release is no longer as it was promoted."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_drift
short_description: Tell what of a promoted release is no longer as it was promoted
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - >-
    Holds the units, drop-ins, the arguments of the running process, the packages and files of the engine, the driver, the model's
    config.json and weights, and the age of the gate against the promoted release. Changes nothing and needs no root.
extends_documentation_fragment: [inferops.sglang.release_records]
options:
  max_gate_age_s:
    description: Age in seconds from which a passed gate counts as drift. 0 means never.
    type: float
    default: 0
attributes:
  check_mode:
    description: The same as without.
    support: full
  diff_mode:
    description: Nothing changes, so there is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Drift | Look
  inferops.sglang.release_drift:
    instance: kimi
  register: drift
"""

RETURN = r"""
drift:
  description: Whether anything differs.
  returned: always
  type: bool
findings:
  description: Every difference, with C(code), C(what), C(where), C(why) and C(do).
  returned: always
  type: list
  elements: dict
unknown:
  description: What could not be looked at.
  returned: always
  type: list
  elements: str
release:
  description: Id of the promoted release, null when nothing is promoted.
  returned: always
  type: str
gate_age_s:
  description: Age of its last passed gate in seconds.
  returned: when it has passed one
  type: float
text:
  description: The same for a person.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.release import drift_report
from ..module_utils._core.release.host_real import RealHost
from ..module_utils._core.release.store import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "max_gate_age_s": {"type": "float", "default": 0},
            "state_dir": {"type": "path", "default": "/var/lib/inferops"},
            "unit_dir": {"type": "path", "default": "/etc/systemd/system"},
        },
        supports_check_mode=True,
    )
    p = module.params
    host = RealHost()
    try:
        store = Store(host, p["instance"], p["state_dir"], p["unit_dir"])
        report = drift_report.look(host, store, max_gate_age_s=p["max_gate_age_s"])
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, **report)


if __name__ == "__main__":
    main()
