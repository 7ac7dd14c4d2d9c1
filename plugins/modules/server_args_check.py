#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module server_args_check: SGLang launch arguments against the source of a release."""

from __future__ import annotations

DOCUMENTATION = r"""
module: server_args_check
short_description: Check SGLang launch arguments against the installed source
version_added: 0.1.0
author: [Inferops (@inferops)]
extends_documentation_fragment: [inferops.sglang.server_args]
description:
  - Reads the source of a SGLang release and says what the release would do with a command line, before anything is started.
  - Takes exactly one of O(argv) and O(args).
  - Fails on what SGLang itself would refuse, on settings that make it slow, and on advice, unless accepted by code with a reason.
  - Imports and runs nothing of SGLang unless O(live_python) is set; it changes nothing on the host.
options:
  args_label:
    description: What findings call O(args), such as the name of the variable that holds them.
    type: str
    default: args
  source_root:
    description: Site-packages folder that holds C(sglang), source folder, or wheel of the release under test.
    type: path
    required: true
  expect:
    description:
      - What must be true of the running server, as C(decode_graphs) or C(prefill_graphs) (V(enabled) or V(disabled)),
        or any field of the release with its value, nested ones dotted.
      - An expectation the arguments contradict is an error.
    type: dict
    default: {}
  live_python:
    description:
      - Interpreter that has the release installed. With it SGLang itself resolves the arguments as well, in a throw-away process
        that starts no server and is limited to 120 seconds and 8 GiB; what it answers counts, and a disagreement is a finding.
      - Where that cannot be done, a finding says why, and what the source says counts.
      - With C(--trust-remote-code) among the arguments SGLang itself may run code of the model, as the server would.
    type: path
  live_user:
    description: Account that O(live_python) runs as where the module runs as root. Give that of the server, which may do no more.
    type: str
  live_container:
    description:
      - Image that O(live_python) is in. It is asked in a throw-away container without a network, in which nothing can be written.
    type: dict
    suboptions:
      image:
        description: Image, by its digest. Empty means that O(live_python) is on the host.
        type: str
        default: ""
      args:
        description: Words for podman run by which the server gets its devices and its shared memory.
        type: list
        elements: str
        default: []
      volumes:
        description: Folders of the host that can be read in it at the same place, such as that of the model.
        type: list
        elements: path
        default: []
attributes:
  check_mode:
    description: Changes nothing, so it does the same in check mode.
    support: full
  diff_mode:
    description: Changes nothing, so there is nothing to show.
    support: none
  idempotent:
    description: The same arguments and source give the same report.
    support: full
notes:
  - Without O(live_python) the answer is kept for the next time in C(~/.cache/inferops/check) of the account it runs as, or below
    E(INFEROPS_CACHE) or E(XDG_CACHE_HOME); not in check mode, not with a secret among the arguments or in their environment, and
    not where the environment says C(INFEROPS_CHECK_CACHE=off). A kept answer counts while the content of the source is the same.
  - Needs Python 3.11 or newer on the host, as the tools environment has; O(live_python) may be 3.10 or newer.
seealso:
  - module: inferops.sglang.server_args_diff
"""

EXAMPLES = r"""
- name: Check the arguments of a pipeline over eight cards
  inferops.sglang.server_args_check:
    args:
      model_path: /srv/models/k2.6
      pp_size: 8
      pp_async_batch_depth: 8
    source_root: /opt/inferops/engines/current/lib/python3.11/site-packages
    model_config_path: /srv/models/k2.6
    facts: {platform: cuda, sm: 120, gpu_count: 8, gpu_memory_mib: 97887}
    expect: {decode_graphs: enabled}

- name: Ask the installed release itself as well
  inferops.sglang.server_args_check:
    argv: [--model-path, /srv/models/k2.6, --pp-size, "8"]
    source_root: /opt/inferops/engines/current/lib/python3.11/site-packages
    live_python: /opt/inferops/engines/current/bin/python
    live_user: sglang

- name: Run without CUDA graphs for a week, on record
  inferops.sglang.server_args_check:
    argv: [--model-path, /srv/models/k2.6, --disable-cuda-graph]
    source_root: /srv/wheelhouse/sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl
    accept:
      - {code: SGA301, reason: hunting a capture failure, expires: "2026-12-24"}
"""

RETURN = r"""
argv:
  description: The words that were checked, rendered from O(args) where that was given.
  returned: always
  type: list
  elements: str
blocking:
  description: Whether an error or an advice stands that nobody accepted; the module then fails.
  returned: always
  type: bool
outcome:
  description: What SGLang would do, V(ok), V(parse_error), V(fatal), or V(unknown) where a refusal depends on facts not given.
  returned: always
  type: str
tier:
  description: V(live) where SGLang itself answered, else V(static).
  returned: always
  type: str
findings:
  description: Ordered by position in RV(argv), then by code.
  returned: always
  type: list
  elements: dict
  sample: [{code: SGA301, level: error, flag: --disable-cuda-graph, source: "srt/server_args.py:432", accepted: null}]
report:
  description:
    - The whole report, the same as C(inferops check --format json) prints.
    - C(effective) holds the resolved value by field, nested ones dotted; a field that is not decided is absent.
    - C(changed) holds the fields SGLang changes, each with C(from), C(to), C(source) as file and line, C(guard), and C(because).
    - C(undecided) lists the fields that are not decided, each with what would decide it.
    - Besides these C(sglang_version), C(source_style), C(tier), C(outcome), C(message), C(findings).
  returned: always
  type: dict
text:
  description: The report as a person reads it.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.args.answers import default_answers
from ..module_utils._core.args.module_input import COMMAND_LINE, check_with
from ..module_utils._core.errors import InferopsError

SPEC = {
    **COMMAND_LINE,
    "args_label": {"type": "str", "default": "args"},
    "source_root": {"type": "path", "required": True},
    "expect": {"type": "dict", "default": {}},
    "live_python": {"type": "path"},
    "live_user": {"type": "str"},
    "live_container": {
        "type": "dict",
        "options": {
            "image": {"type": "str", "default": ""},
            "args": {"type": "list", "elements": "str", "default": []},
            "volumes": {"type": "list", "elements": "path", "default": []},
        },
    },
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=SPEC,
        mutually_exclusive=[("argv", "args")],
        required_one_of=[("argv", "args")],
        supports_check_mode=True,
    )
    try:
        argv, report = check_with(module.params, None if module.check_mode else default_answers())
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    whole = report.as_dict()
    # Ansible has a meaning of its own for a result named changed, so that part is in the whole report alone.
    parts = {key: value for key, value in whole.items() if key != "changed"}
    result = {"argv": argv, "blocking": report.blocking, "text": report.text(), "report": whole, **parts}
    if report.blocking or report.unanswered:
        module.fail_json(msg=report.text(), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
