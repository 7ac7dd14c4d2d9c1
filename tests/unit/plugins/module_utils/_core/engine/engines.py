# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small wheels, locks and hosts for the tests of engines."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.host import Interpreter
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.install import How
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.installers import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.plan import Wanted

LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "python_version": "3.12",
    "python_full_version": "3.12.3",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "os_name": "posix",
}


def interpreter(version=(3, 12, 3), libc="glibc 2.39", machine="x86_64") -> Interpreter:
    marker = {**LINUX, "platform_machine": machine, "python_version": ".".join(map(str, version[:2]))}
    return Interpreter("/usr/bin/python3", version, libc, True, True, marker)


def make_wheel(house: Path, name="sglang", version="9.9.9", tag="py3-none-any", metadata=(), files=None, scripts=True) -> Path:
    """Write a wheel that pip and uv install; without files it is SGLang with its module."""
    house.mkdir(exist_ok=True)
    path = house / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    content = dict(files or {f"{name}/__init__.py": "", f"{name}/launch_server.py": "print('launched')\n"})
    content[f"{info}/METADATA"] = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, ""])
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if scripts:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}.launch_server:main\n"
    content[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*content, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in content.items():
            archive.writestr(file, text)
    return path


def lock_of(*wheels: Path, more="") -> str:
    lines = [
        f"{wheel.name.split('-')[0]}=={wheel.name.split('-')[1]} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
        for wheel in wheels
    ]
    return "\n".join([*lines, more]).strip()


def wanted(tmp_path: Path, lock: str, version="9.9.9", **more) -> Wanted:
    values = {
        "root": str(tmp_path / "engines"),
        "python": sys.executable,
        "wheelhouse": str(tmp_path / "house"),
        "compile": False,
    }
    return Wanted(version=version, lock=lock, **{**values, **more})


def by_pip(tmp_path: Path, **more) -> How:
    """This environment's own pip, as a play uses that of the tools."""
    sources = more.pop("sources", Sources(str(tmp_path / "house")))
    return How(**{"sources": sources, "installer": "pip", "pip_python": sys.executable, "wait_s": 20, **more})
