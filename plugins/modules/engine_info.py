#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module engine_info: what is known of an environment of SGLang, and whether it can be made on this host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_info
short_description: Tell whether an environment of SGLang is there, and whether it can be made
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Holds what the lock and the wheels ask for against the host, before anything is downloaded - Python, architecture, C library,
    driver, free space, a folder that can be written.
  - Fails with everything that is in the way at once. What cannot be known is told in RV(notes). Changes nothing.
extends_documentation_fragment: [inferops.sglang.engine]
options:
  required:
    description: Whether what is in the way fails the task.
    type: bool
    default: true
attributes:
  check_mode:
    description: Reads only, so check mode does the same.
    support: full
requirements:
  - Python 3.9 or newer on the target
"""

EXAMPLES = r"""
- name: See what is in the way of the next release
  inferops.sglang.engine_info:
    version: 0.5.23
    lock: "{{ lookup('ansible.builtin.file', 'sglang-0.5.23.lock') }}"
    python: /usr/bin/python3.12
    wheelhouse: /srv/wheelhouse
"""

RETURN = r"""
dir:
  description: Folder of the environment.
  returned: success
  type: str
  sample: /opt/inferops/engines/0.5.23-0f3c8a7be2d1
complete:
  description: Whether it is there, whole.
  returned: success
  type: bool
version:
  description: The release.
  returned: success
  type: str
lock_sha256:
  description: SHA-256 of the lock.
  returned: success
  type: str
python:
  description: Interpreter of the environment.
  returned: success
  type: str
site_packages:
  description: Where its packages are.
  returned: success
  type: str
source_root:
  description: Where the source of SGLang can be read, the installed packages or the wheel; empty where it cannot yet.
  returned: success
  type: str
launch:
  description: Words that start the server, before its arguments.
  returned: success
  type: list
  elements: str
launch_why:
  description: What the form of RV(launch) was decided by.
  returned: success
  type: str
has_venv:
  description: Whether O(python) can make environments with a pip of their own; true where it was not asked.
  returned: success
  type: bool
need_bytes:
  description: Room that the installation takes [bytes]; 0 where the environment is there.
  returned: success
  type: int
notes:
  description: What could not be judged, was estimated or accepted.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.engine.bundle import verify_for
from ..module_utils._core.engine.module_input import shared_spec, wanted
from ..module_utils._core.engine.plan import make_plan
from ..module_utils._core.errors import InferopsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={**shared_spec(), "required": {"type": "bool", "default": True}},
        supports_check_mode=True,
    )
    try:
        plan = make_plan(wanted(module.params))
        if module.params["required"]:
            verify_for(plan)
            plan.refuse()
        answer = plan.as_dict()
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
