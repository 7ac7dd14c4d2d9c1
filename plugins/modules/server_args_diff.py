#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module server_args_diff: what an upgrade of SGLang changes in its arguments."""

from __future__ import annotations

DOCUMENTATION = r"""
module: server_args_diff
short_description: Compare the launch arguments of two SGLang releases
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Reads the source of two releases and lists flags that are gone, new or deprecated, and defaults and choices that differ.
  - With O(argv), says what the upgrade changes for that command line. It reports and does not fail because of differences.
  - Imports and runs nothing of SGLang; it changes nothing on the host.
options:
  from_source:
    description: Site-packages folder, source folder or wheel of the release in use.
    type: path
    required: true
  to_source:
    description: Site-packages folder, source folder or wheel of the release to come.
    type: path
    required: true
  argv:
    description: Arguments in launch order, one list element per word, without the program.
    type: list
    elements: str
  model_config_path:
    description: The model's C(config.json), or the folder that holds it.
    type: path
  facts:
    description: What is known of the host, as for M(inferops.sglang.server_args_check).
    type: dict
    default: {}
  env:
    description: Environment of the server.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Reads only, so it does the same in check mode.
    support: full
  diff_mode:
    description: Changes nothing, so there is nothing to show.
    support: none
  idempotent:
    description: The same sources give the same result.
    support: full
notes:
  - Needs Python 3.11 or newer on the host, as the tools environment has.
seealso:
  - module: inferops.sglang.server_args_check
"""

EXAMPLES = r"""
- name: See what the upgrade does to the command line in use
  inferops.sglang.server_args_diff:
    from_source: /srv/wheelhouse/sglang-0.5.12-cp311-cp311-manylinux_2_34_x86_64.whl
    to_source: /srv/wheelhouse/sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl
    argv: [--model-path, /srv/models/k2.6, --pp-size, "8", --cuda-graph-max-bs, "16"]
  register: upgrade

- name: Stop where it would not start any more
  ansible.builtin.assert:
    that: not upgrade.breaks
    fail_msg: "{{ upgrade.text }}"
"""

RETURN = r"""
from:
  description: Version of the first release.
  returned: success
  type: str
to:
  description: Version of the second release.
  returned: success
  type: str
removed:
  description: Flags that are gone, each with the flag that takes its place, null where none is known.
  returned: success
  type: dict
added:
  description: New flags.
  returned: success
  type: list
  elements: str
deprecated:
  description: Flags that are deprecated from now on, each with the flag the release names instead.
  returned: success
  type: dict
defaults:
  description: Fields whose default differs.
  returned: success
  type: dict
choices:
  description: Flags whose accepted values differ.
  returned: success
  type: dict
breaks:
  description: Whether the second release refuses O(argv).
  returned: success
  type: bool
outcome:
  description: What both releases do with O(argv).
  returned: when O(argv) is given
  type: dict
effective:
  description: Fields whose resolved value differs for O(argv).
  returned: when O(argv) is given
  type: dict
findings:
  description: Findings of the second release for O(argv).
  returned: when O(argv) is given
  type: list
  elements: dict
text:
  description: The difference as a person reads it.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.args.module_input import diff_with
from ..module_utils._core.errors import InferopsError

SPEC = {
    "from_source": {"type": "path", "required": True},
    "to_source": {"type": "path", "required": True},
    "argv": {"type": "list", "elements": "str"},
    "model_config_path": {"type": "path"},
    "facts": {"type": "dict", "default": {}},
    "env": {"type": "dict", "default": {}},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    try:
        found = diff_with(module.params)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, breaks=found.breaks, text=found.text(), **found.as_dict())


if __name__ == "__main__":
    main()
