# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What says which engines stay, for every module that brings and removes them."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  keep:
    description: How many engines that nothing needs stay, newest first. A negative number keeps all.
    type: int
    default: -1
  state_dir:
    description: Where the records of releases are.
    type: path
    default: /var/lib/inferops
  unit_dirs:
    description: Where units are that may start an engine.
    type: list
    elements: path
    default: [/etc/systemd/system, /run/systemd/system, /etc/containers/systemd]
  wait_s:
    description: How long to wait for another run on the same host [s]. 0 does not wait.
    type: int
    default: 3600
"""
