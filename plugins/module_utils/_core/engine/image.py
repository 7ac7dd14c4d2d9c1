# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an engine in a container is asked to be: the image by its digest, the devices it gets, the memory its processes share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InferopsError
from .floors import Floors
from .requirements import version_key

# Quadlets came with podman 4.4 (podman-systemd.unit(5)), CDI devices in them with the same.
PODMAN_FLOOR = "4.4"
CDI_DIRS = ("/etc/cdi", "/var/run/cdi")
MIB = 1024 * 1024
# Engine images with CUDA take about 15 to 20 GB packed and twice that in the store: an estimate, not a measurement.
PULL_MIB = 48 * 1024
_REFERENCE = re.compile(r"(?P<name>[a-z0-9][\w.:/-]*?)(?P<tag>:[\w][\w.-]*)?@sha256:(?P<digest>[0-9a-f]{64})")


@dataclass(frozen=True)
class ImageWanted:
    """``archive`` is a file that the image is loaded from instead of a registry; ``args`` are more words for podman run."""

    version: str
    image: str
    root: str
    archive: str = ""
    authfile: str = ""
    devices: Sequence[str] = ()
    ipc: str = "private"
    shm_mib: int = 16384
    args: Sequence[str] = ()
    launch: Sequence[str] = ()
    accepted_pins: Sequence[str] = ()
    space_mib: int = 0
    podman: str = "podman"
    cdi_dirs: Sequence[str] = field(default=CDI_DIRS)

    @property
    def digest(self) -> str:
        return digest_of(self.image)

    @property
    def folder(self) -> Path:
        """Where the source that was read out of the image lies; named as a virtual environment is, by what it is made of."""
        return Path(self.root) / f"{self.version}-{self.digest[:12]}"

    @property
    def run_words(self) -> list[str]:
        """What the server and whoever asks in its place get of the host, for podman run."""
        shared = ["--ipc=host"] if self.ipc == "host" else [f"--shm-size={self.shm_mib}m"]
        return [*(f"--device={device}" for device in self.devices), *shared, *self.args]


def digest_of(image: str) -> str:
    """Return the 64 hex digits of an image reference; raises InferopsError where it names none.

    >>> digest_of("registry.example:5000/sglang@sha256:" + "0" * 64)[:12]
    '000000000000'
    """
    found = _REFERENCE.fullmatch(image)
    if found is None or found["tag"]:
        tag = "a tag beside the digest says nothing and is not taken" if found else "a tag may name another image tomorrow"
        raise InferopsError(
            f"{image or 'nothing'} does not name an image by its digest alone",
            where="sglang_engine_image",
            why=f"{tag}; what was checked, gated and promoted must be what runs and what is gone back to",
            do="write NAME@sha256:…, as `skopeo inspect docker://NAME:TAG --format '{{.Name}}@{{.Digest}}'` prints it",
        )
    return found["digest"]


def cdi_devices(folders: Iterable[Path]) -> set[str]:
    """Return the devices that specifications of the Container Device Interface name, in YAML or JSON."""
    found = set()
    for path in sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        if path.suffix in (".yaml", ".yml", ".json"):
            text = path.read_text(encoding="utf-8", errors="replace")
            kinds = re.findall(r'^\s*"?kind"?\s*:\s*"?([\w./-]+)', text, flags=re.MULTILINE)
            names = re.findall(r'^\s*(?:-\s+)?\{?"?name"?\s*:\s*[\'"]?([\w.:-]+)', text, flags=re.MULTILINE)
            found |= {f"{kind}={name}" for kind in kinds[:1] for name in names}
    return found


def check_devices(floors: Floors, wanted: ImageWanted) -> None:
    """A device that no specification names is refused by podman at the start, which is after the drain."""
    named = [device for device in wanted.devices if not device.startswith("/")]
    known = cdi_devices(Path(folder) for folder in wanted.cdi_dirs) if named else set()
    missing = [device for device in named if device not in known]
    if missing:
        there = f"there are {', '.join(sorted(known)[:8])}" if known else "no specification names any device"
        floors.refuse(
            f"{', '.join(missing)} is no CDI device of this host: {there} [{', '.join(wanted.cdi_dirs)}]",
            "write them with `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` (anew after each change of the driver)",
        )


def check_shared_memory(floors: Floors, wanted: ImageWanted, total_mib: int | None, host_shm_mib: int | None) -> None:
    """The processes of an engine exchange data in /dev/shm; too little of it kills them with SIGBUS while they serve."""
    if wanted.ipc == "host":
        if host_shm_mib is None:
            floors.notes.append("not judged: the size of /dev/shm on the host")
        elif host_shm_mib < wanted.shm_mib:
            floors.refuse(
                f"/dev/shm of the host has {host_shm_mib} MiB, {wanted.shm_mib} MiB are asked for",
                "make it larger (mount -o remount,size=…m /dev/shm, and in /etc/fstab), or lower sglang_engine_shm_mib",
            )
    elif total_mib is not None and wanted.shm_mib > total_mib:
        floors.refuse(
            f"{wanted.shm_mib} MiB of shared memory are asked for, the host has {total_mib} MiB of memory",
            "lower sglang_engine_shm_mib",
        )


def check_podman(floors: Floors, said: str, *, generator: bool) -> None:
    """Quadlets need podman 4.4 and its generator."""
    found = re.search(r"\d+\.\d+(\.\d+)?", said)
    have, need = version_key(found[0]) if found else None, version_key(PODMAN_FLOOR)
    if have is None or need is None:
        floors.refuse(f"podman does not answer: {said or 'it is not there'}", "install podman and a runtime (crun or runc)")
    elif have < need:
        floors.refuse(
            f"podman {found[0] if found else ''} is there, quadlets need {PODMAN_FLOOR}", "install a newer podman, or use a venv"
        )
    elif not generator:
        floors.refuse("podman's generator of units (quadlet) is not there", "install the package that brings it")
