# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make the archive of the core that hosts run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: core_archive
short_description: Make inferops.pyz, the core as one file that a host's Python runs
version_added: 0.1.0
author: Inferops (@inferops)
description:
  - >-
    Packs the collection's core into a zip application. The same sources give the same bytes on every controller, so its hash
    names the tools environment of a host. Kept in C(~/.cache/inferops/archives) on the controller, or below C(INFEROPS_CACHE).
options:
  _terms:
    description: Not used.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Tools | Copy the core
  ansible.builtin.copy:
    src: "{{ lookup('inferops.sglang.core_archive').path }}"
    dest: /opt/inferops/tools/inferops.pyz
    mode: "0644"
"""

RETURN = r"""
_raw:
  description: One dict with C(path) (on the controller) and C(sha256).
  type: list
  elements: dict
"""

import hashlib
import io
import os
import zipfile
from pathlib import Path

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.inferops.sglang.plugins import module_utils

MAIN = b"""import sys

if sys.version_info < (3, 11):
    raise SystemExit("inferops needs Python 3.11 or newer, this is " + sys.version.split()[0])

from _core.cli import main

raise SystemExit(main())
"""
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def build(core: Path) -> bytes:
    """Return the archive of a core folder: sorted names, one time stamp, one mode, so only the sources decide the bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        files = {f"_core/{path.relative_to(core).as_posix()}": path.read_bytes() for path in core.rglob("*.py")}
        for name, data in sorted({**files, "__main__.py": MAIN}.items()):
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            # Stored, not deflated: compressed bytes differ between versions of zlib.
            archive.writestr(entry, data, compress_type=zipfile.ZIP_STORED)
    return out.getvalue()


def core_folder() -> Path:
    """Return where the core lies, also when module_utils is a namespace of the collection loader."""
    for place in module_utils.__path__:
        if (Path(place) / "_core" / "cli.py").is_file():
            return Path(place) / "_core"
    raise AnsibleError("the collection has no plugins/module_utils/_core")


class LookupModule(LookupBase):
    """One dict with path and sha256."""

    def run(self, terms: list, variables: dict | None = None, **kwargs: object) -> list:
        del terms, variables
        if kwargs:
            raise AnsibleError(f"core_archive takes no option {', '.join(sorted(kwargs))}")
        data = build(core_folder())
        sha256 = hashlib.sha256(data).hexdigest()
        cache = Path(os.environ.get("INFEROPS_CACHE") or Path.home() / ".cache" / "inferops") / "archives"
        path = cache / f"inferops-{sha256[:12]}.pyz"
        try:
            if not path.is_file() or path.read_bytes() != data:
                cache.mkdir(parents=True, exist_ok=True)
                fresh = path.with_name(f".{path.name}.{os.getpid()}")
                fresh.write_bytes(data)
                fresh.replace(path)
        except OSError as exc:
            raise AnsibleError(
                f"core_archive cannot write {path}: {exc.strerror}; set INFEROPS_CACHE to a writable folder"
            ) from exc
        return [{"path": str(path), "sha256": sha256}]
