"""The image of a test host: a Debian root file system, built once, then layers that are cheap to rebuild."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from _core.errors import InferopsError

from .places import REPOSITORY, cache, digest, locked
from .runtime import podman
from .shell import Step, run

PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,python3-venv,python3-apt,sudo,iproute2,procps,ca-certificates,curl,openssh-server,less"
)
NVML_SOURCE = REPOSITORY / "tests" / "fakes" / "nvml"
BUILDER = REPOSITORY / "tests" / "fakes" / "build"
# Each of these units was seen to leave a host "degraded".
MASKED = "systemd-modules-load.service systemd-firstboot.service"
CONTAINERFILE = f"""\
FROM scratch
ADD rootfs.tar /
COPY files/ /
RUN systemctl mask {MASKED} && ldconfig
ENV container=podman
STOPSIGNAL SIGRTMIN+3
CMD ["/lab-init"]
"""
# In a container systemd leaves mount propagation as it found it (private), and then no credential of a service is visible to it.
INIT = """\
#!/bin/sh
mount --make-rshared / && exec /sbin/init
"""
SSHD = """\
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
UsePAM no
MaxSessions 64
MaxStartups 64:30:128
"""


def apt_sources(suite: str, *, folder: Path = Path("/etc/apt")) -> str:
    """Return one-line sources for a Debian suite, from the mirrors this machine itself uses."""
    files = (path for path in (*folder.glob("sources.list"), *folder.glob("sources.list.d/*")) if path.is_file())
    text = "\n".join(path.read_text(errors="replace") for path in files)
    found = re.findall(r"^(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(\S+/debian(?:-security)?/?)\s*", text, flags=re.MULTILINE)
    mirrors = {uri.rstrip("/") for uri in found}
    main = sorted(uri for uri in mirrors if not uri.endswith("-security"))
    if not main:
        raise InferopsError(
            "this machine's package sources name no Debian mirror",
            where=str(folder / "sources.list"),
            do="add a Debian mirror to the sources, or run on Debian 12 or 13",
        )
    security = sorted(uri for uri in mirrors if uri.endswith("-security"))
    lines = [f"deb {main[0]} {suite} main", f"deb {main[0]} {suite}-updates main"]
    return "\n".join(lines + [f"deb {uri} {suite}-security main" for uri in security[:1]]) + "\n"


def rootfs(suite: str, packages: str) -> Path:
    """Return the tar of a root file system, from the cache where it is there."""
    sources = apt_sources(suite)
    key = digest([suite, packages, sources])
    tar = cache("rootfs", f"{suite}-{key}.tar")
    with locked(tar.name):
        if tar.exists():
            return tar
        with Step(f"building the {suite} root file system (once)"), tempfile.TemporaryDirectory(dir=tar.parent) as folder:
            listing = Path(folder, "sources.list")
            listing.write_text(sources)
            part = Path(folder, "rootfs.tar")
            run(
                [
                    "mmdebstrap",
                    "--variant=apt",
                    f"--include={packages}",
                    '--aptopt=Acquire::Languages "none"',
                    "--dpkgopt=path-exclude=/usr/share/doc/*",
                    "--dpkgopt=path-exclude=/usr/share/man/*",
                    "--dpkgopt=path-exclude=/usr/share/locale/*",
                    suite,
                    part,
                    listing,
                ],
                do="make the machine's package mirrors reachable, then repeat",
            )
            part.replace(tar)
    return tar


def nvml_library() -> Path:
    """Return the stand-in libnvidia-ml.so.1, compiled when its sources changed."""
    library = cache("nvml", digest([NVML_SOURCE]), "libnvidia-ml.so.1")
    with locked("nvml"):
        if not library.exists():
            run([sys.executable, BUILDER, "nvml", library.parent], do="see why the stand-in did not compile")
    return library


def public_key() -> Path:
    """Return the public key the hosts let in; the pair is made once per cache."""
    key = cache("ssh", "id_ed25519")
    with locked("ssh-key"):
        if not key.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "inferops-lab", "-f", key])
    return key.with_suffix(".pub")


def image(suite: str = "bookworm") -> str:
    """Return the name of the image, building what has changed."""
    tar, library = rootfs(suite, PACKAGES), nvml_library()
    files: dict[str, tuple[bytes, int]] = {
        "root/.ssh/authorized_keys": (public_key().read_bytes(), 0o600),
        "lab-init": (INIT.encode(), 0o755),
        "etc/ssh/sshd_config.d/inferops-lab.conf": (SSHD.encode(), 0o644),
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": (library.read_bytes(), 0o644),
    }
    pieces = (piece for path, (content, mode) in files.items() for piece in (path, str(mode), content))
    key = digest([tar.name, CONTAINERFILE, *pieces])
    name = f"localhost/inferops-lab:{suite}-{key}"
    with locked("image"):
        if name in podman()("images", "--format", "{{.Repository}}:{{.Tag}}").split():
            return name
        with Step(f"building the {suite} host image"), tempfile.TemporaryDirectory(dir=tar.parent) as folder:
            context = Path(folder)
            for path, (content, mode) in files.items():
                target = context / "files" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                target.chmod(mode)
            (context / "files/root").chmod(0o700)
            (context / "files/root/.ssh").chmod(0o700)
            (context / "rootfs.tar").hardlink_to(tar) if _same_device(tar, context) else shutil.copy(tar, context / "rootfs.tar")
            (context / "Containerfile").write_text(CONTAINERFILE)
            podman()("build", "--isolation=chroot", "--layers", "-t", name, context)
    return name


def _same_device(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev
