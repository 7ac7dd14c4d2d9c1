#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module model_fetch: one revision of a model on a host, whole."""

from __future__ import annotations

DOCUMENTATION = r"""
module: model_fetch
short_description: Bring one revision of a model to a host and prove that it is whole
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - >-
    Fetches into C(ROOT/NAME/REVISION.partial) with the client of the hub, with rclone or with rsync; compares every file with the
    size and the SHA-256 that the source promises, does what M(inferops.sglang.model_info) does, makes the folder read-only and
    only then gives it its name, C(ROOT/NAME/REVISION). A run that was cut short is gone on with by the next.
  - Where the folder is already there, sizes, times and inodes are compared with what was proven; nothing else is read or asked.
  - Free space is compared with the sizes that the source names before anything is fetched.
  - Progress is written to C(ROOT/NAME/.REVISION.progress), one line every few seconds, and printed as the task runs.
  - It runs apart from the connection; where that is lost or the play ends, the host goes on.
options:
  root:
    description: Folder of all models on the host.
    type: path
    required: true
  name:
    description: Name of the model's folder below O(root). Needed unless the source is a folder in its place.
    type: str
    default: ""
  revision:
    description: Revision; for the hub the 40 hex digits of a commit. Needed unless the source is a folder in its place.
    type: str
    default: ""
  source:
    description: >-
      Where from. C(kind) is V(hub) with C(repo) and perhaps C(endpoint); V(rclone) with C(remote) and perhaps C(config), the path
      of its configuration on the host; V(rsync) with C(from) and perhaps C(rsh), the remote shell. Each takes C(exclude), a list
      of patterns of files that are left out. V(folder) with C(path) is
      a folder that is there: it is proven in its place. A key that is not named here is an error.
    type: dict
    required: true
  peer:
    description: >-
      What is O(root) on another host, as rsync reaches it. Tried first; where it has not got the revision, O(source) is asked.
    type: str
    default: ""
  peer_rsh:
    description: Remote shell of rsync for O(peer).
    type: str
    default: ""
  token:
    description: Token for the hub. Handed to its client in the environment only.
    type: str
    default: ""
  environment:
    description: Further environment of the program that fetches, such as proxies, C(RSYNC_PASSWORD) or C(RCLONE_CONFIG_...).
    type: dict
    default: {}
  programs:
    description: Path of the program by kind of source, where it is not found as C(hf), C(rclone) or C(rsync).
    type: dict
    default: {}
  sha256:
    description: SHA-256 by path in the folder, or the path on the host of a list as sha256sum writes it.
    type: raw
  accepted_code:
    description: As for M(inferops.sglang.model_info).
    type: dict
    default: {}
  weights_required:
    description: As for M(inferops.sglang.model_info).
    type: bool
    default: true
  mib_per_s:
    description: Limit of the fetch in MiB per second; 0 means none.
    type: float
    default: 0
  reserve_mib:
    description: Space that stays free on the file system of O(root) in MiB.
    type: float
    default: 1024
  keep:
    description: >-
      How many further revisions of the model are kept; the oldest beyond go, never one that a kept release or a process names.
      V(-1) keeps all.
    type: int
    default: -1
  offline:
    description: Whether nothing may be fetched; a folder that is not there then fails.
    type: bool
    default: false
  warm:
    description: Whether the weights are read into the page cache, if memory suffices.
    type: bool
    default: false
  state_dir:
    description: Where the records of all instances live, see M(inferops.sglang.release).
    type: path
    default: /var/lib/inferops
  records:
    description: Where is kept what was proven of a source of the kind V(folder).
    type: path
    default: /var/cache/inferops/models
attributes:
  check_mode:
    description: Asks the source for sizes and compares them with the free space; fetches and removes nothing.
    support: full
  diff_mode:
    description: Weights are no text.
    support: none
  idempotent:
    description: A second run changes nothing.
    support: full
requirements:
  - Python 3.11 or newer on the target
  - C(hf) of huggingface_hub, rclone or rsync on the target, as O(source) needs
"""

EXAMPLES = r"""
- name: Bring the weights, pinned by commit
  inferops.sglang.model_fetch:
    root: /srv/models
    name: kimi-k2.6
    revision: 0123456789abcdef0123456789abcdef01234567
    source: {kind: hub, repo: moonshotai/Kimi-K2.6}
    token: "{{ vault_hub_token }}"
    mib_per_s: 500
"""

RETURN = r"""
path:
  description: The folder.
  returned: success
  type: str
present:
  description: Whether it is there; V(false) in check mode when it would be fetched.
  returned: success
  type: bool
dry:
  description: Whether this was check mode.
  returned: success
  type: bool
message:
  description: What was done.
  returned: success
  type: str
origin:
  description: The source that was used; V(null) where nothing was fetched.
  returned: success
  type: str
fetched_bytes:
  description: Size of what was or would be fetched [bytes].
  returned: success
  type: int
sha256:
  description: SHA-256 of the files for which one was promised and compared.
  returned: success
  type: dict
pruned:
  description: Revisions that were or would be removed.
  returned: success
  type: list
  elements: str
progress_file:
  description: Where the progress is written.
  returned: success
  type: str
warmed:
  description: What was read into the page cache, or why not.
  returned: when O(warm) is true and the folder is there
  type: str
"""

import signal
from types import FrameType

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.weights.fetch import fetch, warm_up, wish

SPEC = {
    "root": {"type": "path", "required": True},
    "name": {"type": "str", "default": ""},
    "revision": {"type": "str", "default": ""},
    "source": {"type": "dict", "required": True},
    "peer": {"type": "str", "default": ""},
    "peer_rsh": {"type": "str", "default": ""},
    "token": {"type": "str", "default": "", "no_log": True},
    "environment": {"type": "dict", "default": {}, "no_log": True},
    "programs": {"type": "dict", "default": {}},
    "sha256": {"type": "raw"},
    "accepted_code": {"type": "dict", "default": {}},
    "weights_required": {"type": "bool", "default": True},
    "mib_per_s": {"type": "float", "default": 0},
    "reserve_mib": {"type": "float", "default": 1024},
    "keep": {"type": "int", "default": -1},
    "offline": {"type": "bool", "default": False},
    "warm": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": "/var/lib/inferops"},
    "records": {"type": "path", "default": "/var/cache/inferops/models"},
}


def _end(number: int, dummy: FrameType | None) -> None:
    """Let what fetches end with the module."""
    raise SystemExit(128 + number)


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        wanted = wish(module.params)
        result = {**fetch(wanted, check_mode=module.check_mode), "dry": module.check_mode}
        if module.params["warm"] and result["present"] and not module.check_mode:
            result["warmed"] = warm_up(wanted)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    for warning in result.pop("warnings"):
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
