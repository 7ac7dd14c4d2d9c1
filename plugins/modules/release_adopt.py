#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take over an SGLang server that somebody else has written, without touching its process."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release_adopt
short_description: Take over an SGLang server that runs in a unit of its own, without touching its process
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Reads the command line and the environment of the running process and tells them as inventory. Values of secrets are never
    returned; they get the name of a variable to put into a vault.
  - >-
    With O(record=true) the unit becomes the first release of the instance and so the way back of its first upgrade. Its process
    goes on. The unit is taken out of the boot, and C(sglang-INSTANCE.service) that only pulls it in is enabled instead.
  - With O(command) a command line of C(docker run) or the text of a quadlet or unit is read instead; that cannot be recorded.
options:
  instance:
    description: Name of the instance it becomes.
    type: str
    required: true
  unit:
    description: Unit that runs the server, such as V(sglang.service).
    type: str
  command:
    description: Text of a command line, quadlet or unit to read instead of a running process.
    type: str
  record:
    description: Whether to record it as the promoted release.
    type: bool
    default: false
  tools:
    description: The tools environment on the host, with the keys C(python) and C(archive). Needed for O(record=true).
    type: dict
  told:
    description: Lines about it for the head of the inventory, such as what a check found.
    type: list
    elements: str
    default: []
  owner:
    description: Who asks, for the record.
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
    description: Reads and predicts; writes nothing.
    support: full
  diff_mode:
    description: Nothing that runs is changed; the texts written are new.
    support: none
  idempotent:
    description: A second run on the same server changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Adopt | Read the server that runs
  inferops.sglang.release_adopt:
    instance: kimi
    unit: sglang.service
  register: adopted

- name: Adopt | Make its unit the way back
  inferops.sglang.release_adopt:
    instance: kimi
    unit: sglang.service
    record: true
    tools: "{{ sglang_release_tools }}"
"""

RETURN = r"""
found:
  description: >-
    What runs, with the keys C(unit), C(pid), C(launch), C(argv) and C(env) (both without secrets), C(secrets) (names only),
    C(python), C(site_packages), C(version), C(model_path), C(served_name), C(port) and C(image).
  returned: always
  type: dict
inventory:
  description: The variables of the host as YAML, for a person to read and keep.
  returned: always
  type: str
release:
  description: Id of the release it is.
  returned: with record
  type: str
way_back:
  description: The unit that a failing upgrade goes back to.
  returned: with record
  type: str
message:
  description: One sentence that stands alone.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.release.adopt import adopt, read
from ..module_utils._core.release.found import from_text, inventory
from ..module_utils._core.release.host_real import RealHost
from ..module_utils._core.release.store import Store


def result(module: AnsibleModule) -> dict:
    """Return what the module answers."""
    p = module.params
    host = RealHost()
    running = None if p["command"] else read(host, p["unit"])
    found = running.found if running else from_text(p["command"])
    site = running.site_packages if running else ""
    origin = f"{running.unit}, pid {running.pid}" if running else "a command line given as text"
    told = {
        "unit": running.unit if running else None,
        "pid": running.pid if running else None,
        "python": running.python if running else "",
        "site_packages": site,
        "version": running.version if running else "",
        "launch": list(found.launch),
        "argv": list(found.argv),
        "env": dict(found.env),
        "secrets": [*found.secrets, *found.secret_env],
        "model_path": found.model_path,
        "served_name": found.served_name,
        "port": found.port,
        "image": found.image,
    }
    text = inventory(found, instance=p["instance"], origin=origin, site_packages=site, told=p["told"])
    out = {"changed": False, "found": told, "inventory": text, "message": f"read from {origin}"}
    if p["record"] and running:
        store = Store(host, p["instance"], p["state_dir"], p["unit_dir"])
        out.update(adopt(host, store, running, tools=p["tools"], owner=p["owner"], check_mode=module.check_mode))
    return out


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "unit": {"type": "str"},
            "command": {"type": "str"},
            "record": {"type": "bool", "default": False},
            "tools": {"type": "dict"},
            "told": {"type": "list", "elements": "str", "default": []},
            "owner": {"type": "str", "default": "ansible"},
            "state_dir": {"type": "path", "default": "/var/lib/inferops"},
            "unit_dir": {"type": "path", "default": "/etc/systemd/system"},
        },
        required_one_of=[("unit", "command")],
        mutually_exclusive=[("unit", "command")],
        required_if=[("record", True, ["tools", "unit"])],
        supports_check_mode=True,
    )
    try:
        answer = result(module)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
