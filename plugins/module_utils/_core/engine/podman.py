# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""podman on this host, as far as an engine needs it. What runs to ask an image has no network and is gone afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError

GENERATORS = ("/usr/lib/systemd/system-generators", "/usr/local/lib/systemd/system-generators", "/etc/systemd/system-generators")
GENERATOR = "podman-system-generator"
ASK_S, MOVE_S = 300, 4 * 3600
SOURCE_LIMIT_BYTES = 512 << 20

# Runs in the interpreter of the image: who it is, and what it has.
QUESTION = """
import importlib.metadata as m, importlib.util as u, json, os, platform, shutil, sys
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, ValueError, OSError):
    libc = ""
spec = u.find_spec("sglang")
have, requires, version = {}, [], ""
for d in m.distributions():
    name = (d.metadata["Name"] or "").lower().replace("_", "-").replace(".", "-")
    have.setdefault(name, d.version)
    if name == "sglang":
        requires, version = d.requires or [], d.version
print(json.dumps({
    "python": sys.executable, "version": list(sys.version_info[:3]), "libc": libc, "sglang": version,
    "package": os.path.dirname(spec.origin) if spec and spec.origin else "", "script": shutil.which("sglang") or "",
    "have": have, "requires": requires,
    "marker": {
        "python_version": "%d.%d" % sys.version_info[:2], "python_full_version": platform.python_version(), "os_name": os.name,
        "sys_platform": sys.platform, "platform_machine": platform.machine(), "platform_system": platform.system(),
        "platform_python_implementation": platform.python_implementation(), "implementation_name": sys.implementation.name,
        "platform_release": platform.release(), "platform_version": platform.version(),
    },
}))
"""
# Its source, as a tar on standard output.
SOURCE = """
import os, sys, tarfile
package = sys.argv[1]
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as out:
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(n for n in folders if n != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".py") and os.path.isfile(path):
                out.add(path, "sglang/" + os.path.relpath(path, package))
"""


@dataclass(frozen=True)
class Podman:
    """``args`` are the words that the server gets too, so that the question is asked where it will run."""

    program: str = "podman"
    args: Sequence[str] = ()
    generators: Sequence[str] = GENERATORS

    def call(self, *words: str, timeout_s: float = ASK_S) -> tuple[int, str, str]:
        """Return status, output and errors."""
        env = {**os.environ, "PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}
        try:
            done = subprocess.run(
                [self.program, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=env,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"no answer within {timeout_s:g} s"
        except OSError as exc:
            return 127, "", f"{self.program}: {exc.strerror}"
        return done.returncode, done.stdout, done.stderr

    def version(self) -> str:
        status, out, errors = self.call("--version", timeout_s=30)
        return out.strip() if status == 0 else errors.strip()

    def has(self, image: str) -> bool:
        return self.call("image", "exists", image, timeout_s=60)[0] == 0

    def store(self) -> Path:
        status, out, dummy = self.call("info", "--format", "{{.Store.GraphRoot}}", timeout_s=60)
        return Path(out.strip() if status == 0 and out.strip() else "/var/lib/containers/storage")

    def fetch(self, image: str, archive: str, authfile: str) -> None:
        """Bring the image into the store; raises InferopsError with podman's own last line."""
        if archive:
            status, out, errors = self.call("load", "--quiet", "--input", archive, timeout_s=MOVE_S)
        else:
            words = ["--authfile", authfile] if authfile else []
            status, out, errors = self.call("pull", "--quiet", *words, image, timeout_s=MOVE_S)
        if status == 0 and self.has(image):
            return
        why = (errors.strip().splitlines() or [f"status {status}"])[-1]
        if status == 0:
            loaded = out.strip().rpartition(" ")[2]
            seen = self.call("image", "inspect", "--format", "{{.Digest}}", loaded)[1].strip()
            why = f"{archive} holds {loaded} with the digest {seen or 'unknown'}"
        raise InferopsError(
            "the image of the engine is not there; what serves was not touched",
            where=image,
            why=why,
            do="make the registry reachable, or set sglang_engine_image_archive to a file that holds exactly this image",
        )

    def inside(self, image: str, code: str, *words: str) -> list[str]:
        """Return the words that run code in the image, without a network and without leaving anything."""
        fixed = ("run", "--rm", "--pull=never", "--network=none", "--log-driver=none", *self.args)
        return [*fixed, "--entrypoint=python3", image, "-I", "-c", code, *words]

    def ask(self, image: str) -> dict[str, Any]:
        """Return what the interpreter of the image says of itself."""
        status, out, errors = self.call(*self.inside(image, QUESTION))
        try:
            said = json.loads(out.strip().splitlines()[-1]) if status == 0 else None
        except (ValueError, IndexError):
            said = None
        if not isinstance(said, dict):
            raise InferopsError(
                "the image does not answer as an engine does",
                where=image,
                why=(errors.strip().splitlines() or [f"python3 in it ended with status {status}"])[-1],
                do="see whether it holds python3 and runs here: podman run --rm --network=none --entrypoint=python3 IMAGE -V",
            )
        return said

    def copy_source(self, image: str, package: str, target: Path) -> int:
        """Copy the Python source of the package out of the image; return how many files there are."""
        command = [self.program, *self.inside(image, SOURCE, package)]
        env = {**os.environ, "PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}
        count = total = 0
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        ) as run:
            try:
                with tarfile.open(fileobj=run.stdout, mode="r|") as archive:
                    for member in archive:
                        parts = Path(member.name).parts
                        total += member.size
                        if not member.isfile() or ".." in parts or Path(member.name).is_absolute() or total > SOURCE_LIMIT_BYTES:
                            continue
                        content = archive.extractfile(member)
                        if content is not None:
                            path = target / member.name
                            path.parent.mkdir(parents=True, exist_ok=True)
                            path.write_bytes(content.read())
                            count += 1
            except (tarfile.TarError, OSError) as exc:
                raise InferopsError("the source cannot be read out of the image", where=image, why=str(exc)) from exc
        return count

    def drop(self, image: str) -> bool:
        """Remove an image; return whether it is gone. One that a container uses stays."""
        return self.call("image", "rm", image)[0] == 0

    def has_generator(self) -> bool:
        return any((Path(folder) / GENERATOR).exists() for folder in self.generators)
