#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submit a release to the transaction that runs on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: Put a release of an SGLang instance into service, or go back, by a transaction that runs on the host
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - >-
    Writes the release folder and its units, then submits it to C(inferops-release@INSTANCE.service) on the host: drain, stop,
    start, proof, gate, promote and admit, or go back to the promoted release. The action plugin of the same name follows the
    progress and prints it; when the control process dies the host finishes by itself.
  - >-
    Nothing is promoted yet: the release is submitted. The same release is promoted and serves: nothing changes and the age of
    its gate is reported; a changed plan gates again without a restart. The same release is promoted but does not run: it is
    started and proven. Another release is promoted: refused unless O(replace=true).
  - >-
    The role does not write any unit itself. This module writes, below O(unit_dir), C(sglang-INSTANCE-ID.service) (the text in
    O(spec.unit) with C(@RELEASE@) filled in, without its C([Install]) section, with C(Conflicts=sglang-INSTANCE.service);
    never enabled), C(inferops-release@INSTANCE.service), and for O(spec.front) of a kind of ours the units
    C(sglang-INSTANCE-front.socket) and C(sglang-INSTANCE-front.service). The transaction writes and enables
    C(sglang-INSTANCE.service), the unmodified text, on promotion only. After a promotion the process that passed the gate
    goes on running in the unit with the id; from the next boot on it runs in the unit without.
  - >-
    With C(engine.container) in O(spec) the text is a podman quadlet. It is written as C(.container) of the same names below
    C(/etc/containers/systemd), and podman makes the units; the promoted one is started at boot by its own C([Install]) section.
options:
  state:
    description:
      - V(present) puts the release in O(spec) into service.
      - V(rolled_back) goes back to the release promoted before the current one, with proof and without a second gate.
    type: str
    choices: [present, rolled_back]
    default: present
  spec:
    description: The release. Required for O(state=present). An unknown key at any level named here is an error.
    type: dict
    suboptions:
      instance:
        description: Name of the instance; part of unit and folder names. Lower-case letters, digits, V(.), V(_), single V(-).
        type: str
        required: true
      engine:
        description: >-
          The installed engine, with the keys C(version), C(lock_sha256) (of the hashed lock it was installed from), C(python),
          C(site_packages), and C(launch), the list of words before the arguments, such as
          C([/opt/inferops/engines/X/bin/python, -m, sglang.launch_server]). All are required.
        type: dict
        required: true
      model:
        description: The keys C(path), C(served_name) (both required) and C(revision).
        type: dict
        required: true
      argv:
        description: >-
          Arguments in launch order, one word each, without the launch words. Must include host and port as O(spec.port) has it.
          API keys are refused here.
        type: list
        elements: str
        required: true
      env:
        description: Non-secret environment of the engine, strings only. The unit carries it; here it is part of the id.
        type: dict
        default: {}
      secrets_file:
        description: >-
          Path on the host of the file that the unit hands over as credential C(engine.yaml), mode 0600, one C(key: value) per
          line or JSON; C(api-key) in it is used for our own probes. Null when the server has no keys.
        type: path
      unit:
        description: >-
          Text of the service unit with the literal C(@RELEASE@) where the id goes (at least in C(--release-dir)). C(Type=notify),
          C(NotifyAccess=main), C(ExecStart=) the wrapper, C([Install]) with C(WantedBy=multi-user.target). The words after C(--)
          in C(ExecStart=) must be O(spec.engine) launch words and O(spec.argv), quoted with the filter
          P(inferops.sglang.systemd_quote#filter); anything else is refused.
        type: str
        required: true
      port:
        description: Port on 127.0.0.1 where the engine listens, 1 to 65535.
        type: int
        required: true
      front:
        description: >-
          How clients are admitted. C(kind) is V(socket_proxy), with C(listen) as V(0.0.0.0:8000); V(router), with C(listen) for
          the routers alone, C(worker) (that address as they reach it, V(http://10.0.0.5:8000)), C(routers) (a list of their
          addresses) and C(key_file) (on the host, with the key of those who may change their workers); or V(none) when
          something else does it.
        type: dict
        default: {kind: none}
      expect:
        description: >-
          What must be true of the running server, by field name of C(/server_info), nested ones dotted; C(decode_graphs) and
          C(prefill_graphs) take V(enabled) or V(disabled). Any difference fails the proof.
        type: dict
        default: {}
      plan:
        description: Gate plan. Not part of the id.
        type: dict
        required: true
      check:
        description: >-
          Report of the argument check; its C(effective) is compared with C(/server_info), its C(changed) explains differences.
        type: dict
        default: {}
      accepted:
        description: Accepted findings with their reasons, for the record.
        type: list
        elements: dict
        default: []
      gate_context:
        description: >-
          What the gate needs to know beside the plan, such as C(model_config), C(args), C(gpu_count), C(bandwidth_gb_s).
        type: dict
        default: {}
      timeouts:
        description: >-
          Deadlines of the phases in seconds, each above 0: C(drain_s) (default 300), C(stop_s) (120), C(start_s) (3600),
          C(proof_s) (120), C(gate_s) (3600). C(TimeoutStartSec=) of the unit should not be below 60; the wrapper extends it.
        type: dict
        default: {}
      user:
        description: User the engine runs as, for the record.
        type: str
      adopted:
        description: C(unit) in which an adopted server runs. Written by M(inferops.sglang.release_adopt); leave it out.
        type: dict
      tools:
        description: The tools environment on the host, C(python) and C(archive) (the path of C(inferops.pyz)), both required.
        type: dict
        required: true
  instance:
    description: Name of the instance. Required for O(state=rolled_back); otherwise taken from O(spec.instance).
    type: str
  tools:
    description: >-
      The tools environment on the host as it is now, with the keys C(python) and C(archive). For O(state=rolled_back): the
      release gone back to is run by these, since those it was made with may have been removed. Without it, those are used.
    type: dict
  replace:
    description: Whether a release that serves may be taken out of service for the new one.
    type: bool
    default: false
  window_s:
    description: Longest allowed time without service, going back included, in seconds. 0 means no limit.
    type: float
    default: 0
  on_inconclusive:
    description: After two inconclusive gates, V(go_back), or V(hold) the candidate up but not admitted.
    type: str
    choices: [go_back, hold]
    default: go_back
  owner:
    description: Who asks, kept in the attempt and shown to a second run at the same time.
    type: str
    default: ansible
  state_dir:
    description: Where the records of all instances live.
    type: path
    default: /var/lib/inferops
  unit_dir:
    description: Where units are written.
    type: path
    default: /etc/systemd/system
attributes:
  check_mode:
    description: Predicts the action and the texts it would write; touches nothing.
    support: full
  diff_mode:
    description: Units and arguments before and after.
    support: full
  idempotent:
    description: A second run with the same spec changes nothing while the promoted release serves.
    support: full
extends_documentation_fragment: []
"""

EXAMPLES = r"""
- name: Release | Put it into service
  inferops.sglang.release:
    spec: "{{ __sglang_release_spec }}"
    replace: "{{ sglang_release_replace }}"

- name: Release | Go back to the release promoted before
  inferops.sglang.release:
    instance: kimi
    state: rolled_back
"""

RETURN = r"""
release:
  description: Id of the release, 12 hex digits.
  returned: always
  type: str
action:
  description: >-
    What was decided; V(none), V(deploy), V(replace), V(start), V(gate), V(rollback), or V(recover) (an unfinished attempt had
    to be finished first).
  returned: always
  type: str
outcome:
  description: >-
    How the attempt ended; V(promoted), V(serving) (started or proven again), V(gate_failed), V(rolled_back), V(stopped)
    (a first deploy failed), V(held), V(nothing_serves). V(submitted) when nobody follows.
  returned: when something was submitted
  type: str
verdict:
  description: Verdict of the gate.
  returned: when a gate ran
  type: str
reasons:
  description: Why, in sentences.
  returned: always
  type: list
  elements: str
message:
  description: One sentence that stands alone.
  returned: always
  type: str
forecast:
  description: Expected seconds without service, by phase, and the same when it goes back.
  returned: when something is or would be submitted
  type: dict
gate:
  description: Summary of the gate, with C(verdict), C(points), C(diagnosis), C(folder) and C(age_s).
  returned: when the release was ever gated
  type: dict
report_folder:
  description: Folder on the host with the gate's reports.
  returned: when a gate ran
  type: str
last_attempt:
  description: How the attempt before this one ended.
  returned: when there was one
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.release.host_real import RealHost
from ..module_utils._core.release.spec import ReleaseSpec
from ..module_utils._core.release.store import Store
from ..module_utils._core.release.submit import submit


def argument_spec() -> dict:
    """Return the arguments; the inside of spec is checked by the core, which names the nearest key for an unknown one."""
    return {
        "state": {"type": "str", "choices": ["present", "rolled_back"], "default": "present"},
        "spec": {"type": "dict"},
        "instance": {"type": "str"},
        "tools": {"type": "dict"},
        "replace": {"type": "bool", "default": False},
        "window_s": {"type": "float", "default": 0},
        "on_inconclusive": {"type": "str", "choices": ["go_back", "hold"], "default": "go_back"},
        "owner": {"type": "str", "default": "ansible"},
        "state_dir": {"type": "path", "default": "/var/lib/inferops"},
        "unit_dir": {"type": "path", "default": "/etc/systemd/system"},
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("state", "present", ["spec"]), ("state", "rolled_back", ["instance"])],
        supports_check_mode=True,
    )
    p = module.params
    try:
        spec = ReleaseSpec.from_dict(p["spec"]) if p["state"] == "present" else None
        host = RealHost()
        store = Store(host, spec.instance if spec else p["instance"], p["state_dir"], p["unit_dir"])
        result = submit(
            host,
            store,
            spec,
            replace=p["replace"],
            window_s=p["window_s"],
            on_inconclusive=p["on_inconclusive"],
            owner=p["owner"],
            check_mode=module.check_mode,
            tools=p["tools"],
        )
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
