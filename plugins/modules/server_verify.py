#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compare a running server with what was asked."""

from __future__ import annotations

DOCUMENTATION = r"""
module: server_verify
short_description: Prove that a running SGLang server is what was asked for
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - >-
    Asks the server itself. C(/v1/models) must list the served name, one short generation must bring a token, and what
    C(/server_info) says must be what was asked and expected. Every difference is explained by a rule of the argument check or
    fails.
  - Only an allow-list of settings is returned; keys, commands and addresses are not in it.
options:
  base_url:
    description: Root of the server's HTTP API, such as V(http://127.0.0.1:30000).
    type: str
    required: true
  served_name:
    description: Name that C(/v1/models) must list. Not compared when absent.
    type: str
  argv:
    description: Arguments the server was started with; says which settings were asked for.
    type: list
    elements: str
    default: []
  expect:
    description: >-
      What must be true, by field name, nested ones dotted; C(decode_graphs) and C(prefill_graphs) take V(enabled) or V(disabled).
    type: dict
    default: {}
  check:
    description: Report of M(inferops.sglang.server_args_check) for the same arguments.
    type: dict
    default: {}
  generate:
    description: Whether to ask for one short generation.
    type: bool
    default: true
  api_key_file:
    description: File on the target with C(api-key), as it is handed to the engine.
    type: path
attributes:
  check_mode:
    description: The same as without; the generation is short and changes nothing.
    support: full
  diff_mode:
    description: Nothing changes, so there is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Proof | The server runs with decode graphs
  inferops.sglang.server_verify:
    base_url: http://127.0.0.1:30000
    served_name: kimi-k2.6
    expect: {decode_graphs: enabled, pp_async_batch_depth: 8}
"""

RETURN = r"""
proven:
  description: Whether nothing failed.
  returned: always
  type: bool
failures:
  description: What failed, in sentences.
  returned: always
  type: list
  elements: str
differences:
  description: Every setting that differs, with C(field), C(expected), C(running), C(explained), C(kind).
  returned: always
  type: list
  elements: dict
notes:
  description: What differs or could not be seen, and fails nothing.
  returned: always
  type: list
  elements: str
resolved:
  description: The allow-listed part of what the server reports.
  returned: always
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.release.host_real import RealHost
from ..module_utils._core.release.proof import prove
from ..module_utils._core.release.redact import read_secrets


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_url": {"type": "str", "required": True},
            "served_name": {"type": "str"},
            "argv": {"type": "list", "elements": "str", "default": []},
            "expect": {"type": "dict", "default": {}},
            "check": {"type": "dict", "default": {}},
            "generate": {"type": "bool", "default": True},
            "api_key_file": {"type": "path", "no_log": False},
        },
        supports_check_mode=True,
    )
    p = module.params
    host = RealHost()
    key = read_secrets(host.read(Path(p["api_key_file"]))).get("api_key") if p["api_key_file"] else None
    what = {name: p[name] for name in ("served_name", "argv", "expect", "check", "generate")}
    proof = prove(host.http, p["base_url"].rstrip("/"), key=key, **what).as_dict()
    if not proof["proven"]:
        module.fail_json(msg="the running server is not what was asked: " + "; ".join(proof["failures"]), **proof)
    module.exit_json(changed=False, **proof)


if __name__ == "__main__":
    main()
