# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an engine release and its environment are called in every module that takes them."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  version:
    description: SGLang release; the lock must pin the same.
    type: str
    required: true
  lock:
    description: Text of the lock, every package pinned and with hashes. Kept out of the log for its length.
    type: str
    required: true
  lock_path:
    description: Where the lock is from, for messages.
    type: str
    default: lock
  root:
    description: Folder on the host that holds the environments.
    type: path
    default: /opt/inferops/engines
  python:
    description: Interpreter on the host that the environment is made with.
    type: path
    default: /usr/bin/python3
  wheelhouse:
    description: Folder on the host with the wheels of the lock. Empty means the package index.
    type: str
    default: ""
  bundle:
    description: Folder on the host that playbook C(bundle) made; verified before any of it is used. Instead of O(wheelhouse).
    type: str
    default: ""
  compile:
    description: Whether modules are compiled to byte code at installation.
    type: bool
    default: true
  launch:
    description: Words between the interpreter and the arguments of the server. Empty decides by the source of the release.
    type: list
    elements: str
    default: []
  driver_version:
    description: Version of the NVIDIA driver. Empty asks the kernel module that is loaded.
    type: str
    default: ""
  space_mib:
    description: Room that the installation takes [MiB]. 0 works it out of the wheels, or estimates it for a package index.
    type: int
    default: 0
  accepted_pins:
    description: Packages that may be of another version than the release asks for.
    type: list
    elements: str
    default: []
  interpreter:
    description:
      - Archive on the host (tar, also gzip, bzip2 or xz) of a relocatable Python. Taken where O(python) is not what the release
        or the lock needs; unpacked beside the environments, and removed with the last that was made with it.
      - Empty takes the one in the folder C(interpreter) of O(bundle), if there is one.
    type: str
    default: ""
  interpreter_sha256:
    description: SHA-256 of O(interpreter); without it the archive is refused.
    type: str
    default: ""
attributes:
  diff_mode:
    description: Thousands of files; the name of the folder tells the difference.
    support: none
"""
