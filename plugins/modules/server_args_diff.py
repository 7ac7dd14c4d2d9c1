#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module server_args_diff: what an upgrade of SGLang changes in its arguments."""

from __future__ import annotations

DOCUMENTATION = r"""
module: server_args_diff
short_description: Compare the launch arguments of two SGLang releases
version_added: 0.1.0
author: [Inferops (@inferops)]
extends_documentation_fragment: [inferops.sglang.server_args]
description:
  - Reads the source of two releases and lists flags that are gone, new or deprecated, and defaults and choices that differ.
  - With O(argv) or O(args), says what the upgrade removes, renames, deprecates, refuses and changes for that command line, and
    writes it for the new release where the meaning stays the same. It reports and does not fail because of differences.
  - Imports and runs nothing of SGLang; it changes nothing on the host.
options:
  from_source:
    description: Site-packages folder, source folder or wheel of the release in use; or its version, looked for in O(search).
    type: path
    required: true
  to_source:
    description: The same for the release to come.
    type: path
    required: true
  search:
    description:
      - Folders in which a version is looked for, as C(sglang-VERSION-*.whl), as C(VERSION/) that holds the package, or as an
        environment C(VERSION-*/).
    type: list
    elements: path
    default: []
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
  description: Whether the command line would not start any more, or something blocks it that did not before.
  returned: success
  type: bool
verdict:
  description: V(fine), V(breaks), or V(unknown) where a refusal depends on facts that were not given.
  returned: when a command line is given
  type: str
outcome:
  description: What both releases do with the command line as it stands.
  returned: when a command line is given
  type: dict
findings:
  description: What the upgrade breaks, announces and changes for the command line.
  returned: when a command line is given
  type: list
  elements: dict
rewritten:
  description:
    - The command line for the new release in C(argv), each change with its reason in C(steps), what has no
      equal in C(left_to_you), and what the new release does with it in C(outcome).
  returned: when a command line is given
  type: dict
effective:
  description: Fields whose resolved value differs, compared with the rewritten command line.
  returned: when a command line is given
  type: dict
alike:
  description: How many fields resolve to the same value.
  returned: when a command line is given
  type: int
undecided:
  description: Fields that the check of one of the releases leaves open.
  returned: when a command line is given
  type: list
  elements: str
text:
  description: The difference as a person reads it.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.args.module_input import COMMAND_LINE, diff_with
from ..module_utils._core.errors import InferopsError

SPEC = {
    "from_source": {"type": "path", "required": True},
    "to_source": {"type": "path", "required": True},
    "search": {"type": "list", "elements": "path", "default": []},
    **COMMAND_LINE,
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, mutually_exclusive=[("argv", "args")], supports_check_mode=True)
    try:
        found = diff_with(module.params)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, breaks=found.breaks, text=found.text(), **found.as_dict())


if __name__ == "__main__":
    main()
