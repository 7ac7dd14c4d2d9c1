# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names of packages: who made one, whether it belongs to the driver set, and which ones a wish comes down to on a platform."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .branches import driver_version

# From this branch on NVIDIA's packages for Ubuntu carry no branch in their names (Driver Installation Guide, "Recent updates").
PLAIN_NAMES_FROM = 590
_SET = re.compile(
    r"^(nvidia-|libnvidia-|linux-(modules|objects|signatures)-nvidia-|xserver-xorg-video-nvidia|cuda-drivers|firmware-nvidia-gsp"
    r"|kmod-nvidia|libcuda1$|libcudadebugger1$|libnvcuvid1$|libnvoptix1$|libxnvctrl0$|xorg-x11-drv-nvidia|dkms-nvidia$)"
)
_NOT_IN_SET = re.compile(r"^(nvidia-container|libnvidia-container|nvidia-cuda-|nvidia-driver-pinning|nvidia-cudnn|nvidia-docker)")
_CANONICAL = re.compile(
    r"^(linux-(modules|objects|signatures)-nvidia-|nvidia-(headless|kernel-source|utils|dkms|driver)-.*-server)|-server(-open)?$"
)
_CLOSED = re.compile(
    r"^(nvidia-kernel-dkms|nvidia-dkms(-\d+)?(-server)?|cuda-drivers(-\d+)?|kmod-nvidia(-latest)?-dkms|nvidia-kernel-source(-\d+)?(-server)?)$"
)
_OPEN = re.compile(r"-open(-|$)")


@dataclass(frozen=True)
class Package:
    """An installed package; ``held`` keeps the package manager from moving it."""

    name: str
    version: str
    held: bool = False

    @property
    def in_set(self) -> bool:
        """Belongs to the driver: must move together with the rest or not at all."""
        return belongs(self.name) and driver_version(self.version) is not None

    @property
    def closed_module(self) -> bool:
        return _CLOSED.match(self.name) is not None

    @property
    def open_module(self) -> bool:
        return belongs(self.name) and _OPEN.search(self.name) is not None

    @property
    def named_branch(self) -> int | None:
        """Return the branch in the name, such as 580 of libnvidia-compute-580."""
        found = re.search(r"-(\d{3})(-|$)", self.name)
        return int(found.group(1)) if found else None

    @property
    def maker(self) -> str:
        """Return who packaged it, as far as name and version tell: nvidia or distribution."""
        if _CANONICAL.search(self.name) or re.search(r"(~deb\d|\+deb\d|-\d+ubuntu0\.\d|-0ubuntu\d+(\.\d+){2})", self.version):
            return "distribution"
        return "nvidia"


def belongs(name: str) -> bool:
    """Say whether a name is one of the driver set.

    >>> belongs("libnvidia-compute-580"), belongs("nvidia-container-toolkit"), belongs("cuda-toolkit-13-0")
    (True, False, False)
    """
    return _SET.match(name) is not None and _NOT_IN_SET.match(name) is None


def platform(os_id: str, os_version: str) -> str | None:
    """Return how NVIDIA names a distribution release in its repositories; None for one that this role does not know.

    >>> platform("ubuntu", "24.04"), platform("debian", "13"), platform("almalinux", "9.6")
    ('ubuntu2404', 'debian13', 'rhel9')
    """
    major = os_version.partition(".")[0]
    if os_id == "ubuntu" and os_version in {"22.04", "24.04", "26.04"}:
        return "ubuntu" + os_version.replace(".", "")
    if os_id == "debian" and major in {"12", "13"}:
        return "debian" + major
    if os_id in {"rhel", "almalinux", "rocky", "centos", "ol"} and major in {"9", "10"}:
        return "rhel" + major
    return None


def family(os_id: str) -> str:
    return "apt" if os_id in {"ubuntu", "debian"} else "dnf"


def driver_packages(os_id: str, *, source: str, branch: int, flavour: str, full: bool, kernel: str, prebuilt: bool) -> list[str]:
    """Return what to ask the package manager for; the rest of the set follows by dependencies.

    Source of the names: NVIDIA Driver Installation Guide (repository of NVIDIA), Canonical's server documentation (distribution).
    ``prebuilt`` takes modules that the distribution has built and signed for this kernel.
    """
    opened = flavour == "open"
    if source == "distribution":
        tail = f"{branch}-server" + ("-open" if opened else "")
        signed = [f"linux-modules-nvidia-{tail}-{kernel.rsplit('-', 1)[-1]}", f"nvidia-headless-no-dkms-{tail}"]
        headless = signed if prebuilt else [f"nvidia-headless-{tail}"]
        return [*headless, f"nvidia-utils-{branch}-server", *([f"nvidia-driver-{tail}"] if full else [])]
    if os_id == "ubuntu":
        part = f"-{branch}" if branch < PLAIN_NAMES_FROM else ""
        end = part + ("-open" if opened else "")
        compute = [f"libnvidia-compute{part}", f"nvidia-compute-utils{part}", f"nvidia-utils{part}"]
        return [f"nvidia-dkms{end}", *([f"nvidia-driver{end}"] if full else compute)]
    if os_id == "debian":
        module = "nvidia-kernel-open-dkms" if opened else "nvidia-kernel-dkms"
    else:
        module = "kmod-nvidia-open-dkms" if opened else "kmod-nvidia-latest-dkms"
    return [module, "nvidia-driver-cuda", "nvidia-persistenced", *(["nvidia-driver"] if full else [])]


def fabric_manager(os_id: str, branch: int) -> str:
    return f"nvidia-fabricmanager-{branch}" if family(os_id) == "apt" and branch < PLAIN_NAMES_FROM else "nvidia-fabricmanager"


def toolkit_packages(toolkit: str, *, compiler_only: bool) -> list[str]:
    """Return the packages of a CUDA toolkit; never the meta packages that pull a driver."""
    if not toolkit:
        return []
    return [f"cuda-nvcc-{toolkit}", f"cuda-cudart-dev-{toolkit}"] if compiler_only else [f"cuda-toolkit-{toolkit}"]


def headers_package(os_id: str, kernel: str) -> str:
    return f"linux-headers-{kernel}" if family(os_id) == "apt" else f"kernel-devel-{kernel}"
