# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whose records are read, and where they and the units are."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  instance:
    description: Name of the instance.
    type: str
    required: true
  state_dir:
    description: Where the records of all instances live.
    type: path
    default: /var/lib/inferops
  unit_dir:
    description: Where units are.
    type: path
    default: /etc/systemd/system
"""
