#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module engine: make or remove an environment of SGLang, and drop those that nothing needs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine
short_description: Make an environment of SGLang from a lock, or remove one
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Makes C(<root>/<version>-<hash of the lock>) with uv or pip. It is made under another name and renamed when it is whole,
    so that an environment which is there is complete. Other environments are not touched.
  - One run at a time works on a host; another one waits, and finds the environment made. What an interrupted run has left is
    removed by the next one, which takes what was downloaded from the cache.
  - Afterwards the versions are held against the lock and against what the release asks for, and the argument module of SGLang is
    imported where the lock has torch.
extends_documentation_fragment: [inferops.sglang.engine, inferops.sglang.engine_keeping]
options:
  state:
    description: V(absent) removes the environment; refused while a process, a release or a unit needs it.
    type: str
    choices: [present, absent]
    default: present
  installer:
    description: V(auto) takes uv where it is found and pip otherwise. The result is the same.
    type: str
    choices: [auto, uv, pip]
    default: auto
  uv:
    description: uv on the host. Empty looks for it on the path and beside O(pip_python).
    type: str
    default: ""
  pip_python:
    description: Interpreter on the host whose pip (22.3 or newer) fills the environment. Empty gives it a pip of its own.
    type: str
    default: ""
  index_url:
    description: Package index instead of the one that uv and pip ask by themselves. Not with O(wheelhouse).
    type: str
    default: ""
  index_username:
    description: Account at O(index_url).
    type: str
    default: ""
  index_password:
    description: Its password. Handed to uv and pip in their environment; never in an argument or a file.
    type: str
    default: ""
attributes:
  check_mode:
    description: Says what would be made or removed, or what is in the way.
    support: full
requirements:
  - Python 3.9 or newer on the target
  - uv, pip 22.3 or newer, or an interpreter with ensurepip
"""

EXAMPLES = r"""
- name: Install a release beside the one that serves
  inferops.sglang.engine:
    version: 0.5.23
    lock: "{{ lookup('ansible.builtin.file', 'sglang-0.5.23.lock') }}"
    wheelhouse: /srv/wheelhouse
    keep: 2
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
installer:
  description: What made the environment; empty where it was there.
  returned: success
  type: str
removed:
  description: Environments that were removed.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.engine.install import How, install
from ..module_utils._core.engine.installers import Sources
from ..module_utils._core.engine.module_input import keeping_spec, shared_spec, wanted
from ..module_utils._core.engine.plan import make_plan
from ..module_utils._core.engine.prune import absent, prune
from ..module_utils._core.errors import InferopsError


def argument_spec() -> dict:
    return {
        **shared_spec(),
        **keeping_spec(),
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "installer": {"type": "str", "choices": ["auto", "uv", "pip"], "default": "auto"},
        "uv": {"type": "str", "default": ""},
        "pip_python": {"type": "str", "default": ""},
        "index_url": {"type": "str", "default": ""},
        "index_username": {"type": "str", "default": ""},
        "index_password": {"type": "str", "default": "", "no_log": True},
    }


def present(module: AnsibleModule) -> dict:
    p = module.params
    want = wanted(p)
    if module.check_mode:
        plan = make_plan(want)
        plan.refuse()
        made, installer = not plan.complete, ""
    else:
        sources = Sources(want.wheels, p["index_url"], p["index_username"], p["index_password"])
        plan, made, installer = install(want, How(sources, p["installer"], p["uv"], p["pip_python"], p["wait_s"]))
    dirs = [Path(unit_dir) for unit_dir in p["unit_dirs"]]
    gone = prune(Path(p["root"]), plan.folder, p["keep"], Path(p["state_dir"]), dirs, p["wait_s"], dry=module.check_mode)
    return {"changed": made or bool(gone), "installer": installer, "removed": [str(path) for path in gone], **plan.as_dict()}


def removed(module: AnsibleModule) -> dict:
    p = module.params
    plan = make_plan(wanted(p))
    before = plan.as_dict()
    dirs = [Path(unit_dir) for unit_dir in p["unit_dirs"]]
    changed = absent(plan.folder, Path(p["state_dir"]), dirs, p["wait_s"], dry=module.check_mode)
    gone = [str(plan.folder)] if changed else []
    return {**before, "changed": changed, "installer": "", "removed": gone, "complete": plan.complete and module.check_mode}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        answer = present(module) if module.params["state"] == "present" else removed(module)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    except OSError as exc:
        module.fail_json(msg=f"the environment was not made; what serves was not touched\n  why:   {exc}")
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
