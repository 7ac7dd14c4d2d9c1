#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""pack_python.py ARCHIVE: pack the Python that runs this as a folder that runs wherever it lies (python/bin, python/lib)."""

import os
import sys
import sysconfig
import tarfile
from pathlib import Path

LEFT_OUT = {
    "__pycache__",
    "test",
    "tests",
    "site-packages",
    "dist-packages",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "pydoc_data",
}


def main(path: str) -> None:
    name = "python{}.{}".format(*sys.version_info)
    program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        tar.add(program, f"python/bin/{name}")
        link = tarfile.TarInfo("python/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, name
        tar.addfile(link)
        tar.add(os.path.realpath(sysconfig.get_path("stdlib")), f"python/lib/{name}", filter=_kept)


def _kept(member: tarfile.TarInfo) -> "tarfile.TarInfo | None":
    base = Path(member.name).name
    links_out = member.issym() and (member.linkname.startswith(("/", "..")))
    return None if base in LEFT_OUT or base.startswith("config-") or links_out else member


if __name__ == "__main__":
    main(sys.argv[1])
