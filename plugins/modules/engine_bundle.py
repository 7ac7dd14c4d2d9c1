#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module engine_bundle: seal a folder of wheels for hosts without a network, or verify one."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_bundle
short_description: Seal or verify a bundle of an SGLang release
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Sealing writes a bill of materials (C(sbom.cdx.json), CycloneDX 1.5) of the wheels in C(wheels/) and checksums of all files
    (C(SHA256SUMS)). Verifying names every file that is missing, was added or was changed, and fails.
options:
  path:
    description: Folder of the bundle.
    type: path
    required: true
  version:
    description: SGLang release, for the bill of materials. Without it the bundle is verified.
    type: str
attributes:
  check_mode:
    description: Nothing is sealed; a bundle is verified as without.
    support: full
  diff_mode:
    description: Checksums are not shown.
    support: none
"""

EXAMPLES = r"""
- name: Seal
  inferops.sglang.engine_bundle:
    path: /srv/bundle
    version: 0.5.23

- name: Verify
  inferops.sglang.engine_bundle:
    path: /srv/bundle
"""

RETURN = r"""
path:
  description: The folder.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.engine.bundle import seal, verify
from ..module_utils._core.errors import InferopsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "version": {"type": "str"}},
        supports_check_mode=True,
    )
    path, version = module.params["path"], module.params["version"]
    changed = False
    try:
        if version is None:
            verify(Path(path))
        else:
            changed = module.check_mode or seal(Path(path), version)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=changed, path=path)


if __name__ == "__main__":
    main()
