#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Add a worker to a running sglang-router, or take it out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: router_worker
short_description: Add a worker to a running sglang-router, or take it out
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Uses the router's HTTP API, so no request is lost and nothing is started again.
  - A worker that is taken out gets no new request; the answers it has begun go on.
  - The router keeps its list in memory. Servers that a release of this collection admits come back by themselves; others have
    to be added again when the router was started again.
options:
  router:
    description: Address of the router, such as V(http://127.0.0.1:8000).
    type: str
    required: true
  worker:
    description: Address of the server as the router reaches it.
    type: str
    required: true
  state:
    description: V(present) returns when the router lists it as healthy, V(absent) when the router no longer lists it.
    type: str
    choices: [present, absent]
    default: present
  router_key:
    description: Key of those who may change the router's workers.
    type: str
  worker_key:
    description: Key the server asks for. Refused while the router takes requests without a key.
    type: str
  wait_s:
    description: How long that may take [s].
    type: float
    default: 60
attributes:
  check_mode:
    description: Asks the router and predicts; changes nothing.
    support: full
  diff_mode:
    description: There is no text to compare.
    support: none
"""

EXAMPLES = r"""
- name: Router | Take a server out
  inferops.sglang.router_worker:
    router: http://127.0.0.1:8000
    worker: http://10.0.0.5:8001
    state: absent
"""

RETURN = r"""
workers:
  description: Addresses the router knows afterwards, sorted.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.router.api import RouterApi, ensure


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "router": {"type": "str", "required": True},
            "worker": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "router_key": {"type": "str", "no_log": True},
            "worker_key": {"type": "str", "no_log": True},
            "wait_s": {"type": "float", "default": 60},
        },
        supports_check_mode=True,
    )
    p = module.params
    router = RouterApi(p["router"].rstrip("/"), p["router_key"])
    try:
        changed = ensure(
            router,
            p["worker"],
            present=p["state"] == "present",
            worker_key=p["worker_key"],
            wait_s=p["wait_s"],
            check=module.check_mode,
        )
        workers = sorted(router.workers())
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=changed, workers=workers)


if __name__ == "__main__":
    main()
