#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module engine_image: bring an engine in a container image, keep its source for the check, or remove it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_image
short_description: Bring an engine of SGLang as a container image by its digest, or remove one
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Holds the host against what an engine in a container needs (podman with quadlets, CDI devices, shared memory, room), fetches
    the image by its digest, asks its interpreter in a throw-away container without a network, and copies the Python source of
    SGLang into C(<root>/<version>-<digest>), where the check reads it as it reads a virtual environment.
  - The folder is made under another name and renamed when it is whole. What serves is not touched.
extends_documentation_fragment: [inferops.sglang.engine_keeping]
options:
  version:
    description: SGLang release that the image must hold.
    type: str
    required: true
  image:
    description: V(NAME@sha256:DIGEST). A tag is refused, since it may name another image tomorrow.
    type: str
    required: true
  archive:
    description: File on the host that the image is loaded from, an archive of C(podman save). Empty asks the registry.
    type: str
    default: ""
  authfile:
    description: File on the host with the credentials of the registry, as C(podman login) writes it. Empty takes that of root.
    type: str
    default: ""
  root:
    description: Folder on the host that holds the engines.
    type: path
    default: /opt/inferops/engines
  devices:
    description: CDI devices of the server, such as V(nvidia.com/gpu=all). None on a processor.
    type: list
    elements: str
    default: []
  ipc:
    description: V(private) gives the container shared memory of O(shm_mib), V(host) that of the host, which must have as much.
    type: str
    choices: [private, host]
    default: private
  shm_mib:
    description: Shared memory of the processes of the server [MiB].
    type: int
    default: 16384
  podman_args:
    description: More words for podman run, for the server and for whoever asks in its place.
    type: list
    elements: str
    default: []
  launch:
    description: Words between the interpreter and the arguments of the server. Empty decides by the source in the image.
    type: list
    elements: str
    default: []
  accepted_pins:
    description: Packages that may be of another version than the release asks for.
    type: list
    elements: str
    default: []
  space_mib:
    description: Room that the image takes in the store of podman [MiB]. 0 estimates it.
    type: int
    default: 0
  required:
    description: Whether something in the way is refused in check mode; V(false) only tells it.
    type: bool
    default: true
  state:
    description: V(absent) removes folder and image; refused while a release or a unit needs them.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Says what would be brought or removed, or what is in the way.
    support: full
  diff_mode:
    description: Thousands of files; the name of the folder tells the difference.
    support: none
requirements:
  - Python 3.9 or newer on the target
  - podman 4.4 or newer
"""

EXAMPLES = r"""
- name: Bring an engine in a container
  inferops.sglang.engine_image:
    version: 0.5.23
    image: registry.example/sglang@sha256:0f3c8a7be2d10f3c8a7be2d10f3c8a7be2d10f3c8a7be2d10f3c8a7be2d10f3c
    devices: [nvidia.com/gpu=all]
"""

RETURN = r"""
dir:
  description: Folder of the engine, with its source.
  returned: success
  type: str
complete:
  description: Whether folder and image are there, whole.
  returned: success
  type: bool
version:
  description: The release.
  returned: success
  type: str
lock_sha256:
  description: The digest of the image, which has the place of the hash of a lock.
  returned: success
  type: str
python:
  description: Interpreter in the image.
  returned: success
  type: str
site_packages:
  description: Where its source is on the host.
  returned: success
  type: str
source_root:
  description: Where the source of SGLang can be read; empty where the image is not there yet.
  returned: success
  type: str
launch:
  description: Words that start the server in the container, before its arguments.
  returned: success
  type: list
  elements: str
launch_why:
  description: What the form of RV(launch) was decided by.
  returned: success
  type: str
container:
  description: What the unit and the check need of it, as C(image), C(devices), C(ipc), C(shm_mib), C(args).
  returned: success
  type: dict
need_bytes:
  description: Room that the image takes [bytes]; 0 where it is there.
  returned: success
  type: int
notes:
  description: What could not be judged, was estimated or accepted.
  returned: success
  type: list
  elements: str
removed:
  description: Engines that were removed.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.engine.container import install, make_plan
from ..module_utils._core.engine.image import ImageWanted
from ..module_utils._core.engine.module_input import keeping_spec
from ..module_utils._core.engine.prune import absent, prune
from ..module_utils._core.errors import InferopsError


def argument_spec() -> dict:
    return {
        "version": {"type": "str", "required": True},
        "image": {"type": "str", "required": True},
        "archive": {"type": "str", "default": ""},
        "authfile": {"type": "str", "default": ""},
        "root": {"type": "path", "default": "/opt/inferops/engines"},
        "devices": {"type": "list", "elements": "str", "default": []},
        "ipc": {"type": "str", "choices": ["private", "host"], "default": "private"},
        "shm_mib": {"type": "int", "default": 16384},
        "podman_args": {"type": "list", "elements": "str", "default": []},
        "launch": {"type": "list", "elements": "str", "default": []},
        "accepted_pins": {"type": "list", "elements": "str", "default": []},
        "space_mib": {"type": "int", "default": 0},
        "required": {"type": "bool", "default": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        **keeping_spec(),
    }


def wanted(p: dict) -> ImageWanted:
    same = (
        "version",
        "image",
        "root",
        "archive",
        "authfile",
        "devices",
        "ipc",
        "shm_mib",
        "launch",
        "accepted_pins",
        "space_mib",
    )
    return ImageWanted(args=p["podman_args"], **{name: p[name] for name in same})


def answer(module: AnsibleModule) -> dict:
    p, dry = module.params, module.check_mode
    want = wanted(p)
    dirs, state_dir = [Path(unit_dir) for unit_dir in p["unit_dirs"]], Path(p["state_dir"])
    if p["state"] == "absent":
        plan = make_plan(want)
        changed = absent(want.folder, state_dir, dirs, p["wait_s"], dry=dry)
        gone = [str(want.folder)] if changed else []
        return {**plan.as_dict(), "changed": changed, "removed": gone, "complete": plan.complete and dry}
    if dry:
        plan = make_plan(want)
        if p["required"]:
            plan.refuse()
        made = not plan.complete
    else:
        plan, made = install(want, p["wait_s"])
    removed = prune(Path(p["root"]), want.folder, p["keep"], state_dir, dirs, p["wait_s"], dry=dry)
    return {**plan.as_dict(), "changed": made or bool(removed), "removed": [str(path) for path in removed]}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = answer(module)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    except OSError as exc:
        module.fail_json(msg=f"the engine was not brought; what serves was not touched\n  why:   {exc}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
