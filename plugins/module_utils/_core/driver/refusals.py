# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is in the way of a plan, each told with what to do about it. Nothing has been touched when one of these is said."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InferopsError
from .branches import CLOSED_ENDS, cuda_floor, toolkit_newer_than
from .cards import architecture
from .facts import Facts
from .names import family, headers_package, platform
from .way import Way, owners
from .wish import Wish

# What an installation takes, rounded up [MiB]: our estimate out of the packages' own sizes, a DKMS build and one initramfs more.
ROOT_MIB = 4096
TOOLKIT_MIB = {True: 1024, False: 8192}
BOOT_MIB = 200
NVIDIA_HOST = "developer.download.nvidia.com/compute/cuda/repos"
OTHER_SOURCES = {"graphics-drivers": "the PPA of graphics drivers", NVIDIA_HOST: "the repository of NVIDIA"}


def refusals(facts: Facts, wish: Wish, way: Way, *, needs_packages: bool, prebuilt: bool) -> list[InferopsError]:
    """Return everything in the way at once, in the order in which a person would clear it."""
    found = [*_platform(facts, wish), *_cards(facts, wish), *_sources(facts, wish), *_owner(facts)]
    if needs_packages:
        found += [*_space(facts, wish)]
        if not prebuilt:
            found += [*_headers(facts, way), *_secure_boot(facts)]
    return [*found, *_stopping(facts, wish, way), *_reboot(facts, wish, way)]


def _platform(facts: Facts, wish: Wish) -> Iterator[InferopsError]:
    where = f"{facts.os_id} {facts.os_version}"
    if platform(facts.os_id, facts.os_version) is None:
        yield InferopsError(
            "this distribution release is not one that the role installs drivers on",
            where=where,
            why="names of packages are known for Ubuntu 22.04, 24.04, 26.04, Debian 12, 13 and the RHEL 9 and 10 family",
            do="install the driver by other means and set nvidia_stack_mode: verify",
        )
    if wish.source == "distribution" and facts.os_id != "ubuntu":
        yield InferopsError(
            f"{facts.os_id} itself offers no driver of branch {wish.branch}",
            where="nvidia_stack_source: distribution",
            why="Debian 12 has 535 and Debian 13 has 550; the RHEL family has none of its own",
            do="set nvidia_stack_source: nvidia, mirror or offline",
        )
    floor = cuda_floor(wish.cuda)
    if floor is not None and wish.branch < floor:
        yield InferopsError(
            f"driver branch {wish.branch} does not run CUDA {wish.cuda}",
            where="nvidia_stack_driver_branch",
            why=f"CUDA {wish.cuda} needs branch {floor} [CUDA release notes, minimum required driver version]",
            do=f"set nvidia_stack_driver_branch: {floor} or newer",
        )
    if wish.toolkit and toolkit_newer_than(wish.branch, wish.toolkit):
        yield InferopsError(
            f"CUDA toolkit {wish.toolkit} is newer than the CUDA of driver branch {wish.branch}",
            where="nvidia_stack_cuda_toolkit",
            why="what its compiler makes as PTX does not load on an older driver",
            do="take the toolkit of the branch (580: 13-0, 590: 13-1, 595: 13-2) or a newer branch",
        )


def _cards(facts: Facts, wish: Wish) -> Iterator[InferopsError]:
    """R41: the wrong flavour is refused before anything is installed."""
    if wish.flavour == "closed" and wish.branch >= CLOSED_ENDS:
        yield InferopsError(
            f"branch {wish.branch} has no closed kernel module",
            where="nvidia_stack_kernel_module",
            why=f"it is no longer packaged from branch {CLOSED_ENDS} on",
            do="set nvidia_stack_kernel_module: open",
        )
    for device_id in sorted({card.device_id for card in facts.cards}):
        known = architecture(device_id)
        where = ", ".join(card.address for card in facts.cards if card.device_id == device_id)
        if known is None:
            continue
        if wish.flavour == "closed" and not known.works_closed:
            yield InferopsError(
                f"the closed kernel module does not drive a {known.name} card (10de:{device_id:04x})",
                where=f"nvidia_stack_kernel_module: closed; {where}",
                why="NVIDIA supports these cards with the open kernel modules alone: the driver would find no device",
                do="set nvidia_stack_kernel_module: open",
            )
        if wish.flavour == "open" and not known.works_open:
            yield InferopsError(
                f"the open kernel modules do not drive a card from {known.name} (10de:{device_id:04x})",
                where=f"nvidia_stack_kernel_module: open; {where}",
                why="they need Turing or newer",
                do="take the card out of the host's use, or set nvidia_stack_kernel_module: closed on a branch that has it",
            )
        if known.first_branch is not None and wish.branch < known.first_branch:
            yield InferopsError(
                f"driver branch {wish.branch} does not know a {known.name} card (10de:{device_id:04x})",
                where=f"nvidia_stack_driver_branch; {where}",
                why=f"branch {known.first_branch} is the first that does",
                do=f"set nvidia_stack_driver_branch: {max(known.first_branch, 580)}",
            )


def _sources(facts: Facts, wish: Wish) -> Iterator[InferopsError]:
    """One maker of packages, never two: they share names and split them in other ways."""
    maker = "distribution" if wish.source == "distribution" else "nvidia"
    foreign = sorted(package.name for package in facts.packages if package.in_set and package.maker != maker)
    if foreign:
        remove = "apt-get remove" if family(facts.os_id) == "apt" else "dnf remove"
        yield InferopsError(
            f"driver packages of another maker are installed: {', '.join(foreign[:4])}{' …' if len(foreign) > 4 else ''}",
            where=f"the packages of this host; nvidia_stack_source: {wish.source}",
            why="packages of NVIDIA and of the distribution share names but not their split; mixed they break upgrades",
            do=f"{remove} {' '.join(foreign)}, or set nvidia_stack_source to where they came from",
        )
    for source in facts.sources:
        second = next((said for part, said in OTHER_SOURCES.items() if part in source.uri), None)
        if second is not None and source.file != wish.own_source:
            yield InferopsError(
                f"{second} is enabled a second time or beside the wished source",
                where=f"{source.file}: {source.uri}",
                why="each package would come from where its version is higher, and apt refuses two keys for one repository",
                do=f"remove {source.file}; the role writes {wish.own_source}",
            )


def _owner(facts: Facts) -> Iterator[InferopsError]:
    """R33: a card that was given away on purpose is not taken back."""
    given = [card for card in facts.cards if card.driver in {"vfio-pci", "pci-stub", "xen-pciback"}]
    if given:
        yield InferopsError(
            f"{len(given)} of {len(facts.cards)} cards belong to {given[0].driver}",
            where=", ".join(card.address for card in given),
            why="somebody passes them to a virtual machine; the driver would find them taken",
            do="take them out of that configuration (kernel command line, /etc/modprobe.d) and reboot, or leave this host out",
        )


def _space(facts: Facts, wish: Wish) -> Iterator[InferopsError]:
    need = ROOT_MIB + (TOOLKIT_MIB[wish.toolkit_compiler_only] if wish.toolkit else 0)
    for place, free, needed in (("/", facts.root_free_mib, need), ("/boot", facts.boot_free_mib, BOOT_MIB)):
        if free is not None and free < needed:
            yield InferopsError(
                f"{place} has {free} MiB free, {needed} MiB are needed",
                where=place,
                why="a package manager or an initramfs that runs out of space leaves a host that may not boot",
                do="apt-get clean, remove kernels that are not used, or enlarge the file system",
            )


def _headers(facts: Facts, way: Way) -> Iterator[InferopsError]:
    kernels = [facts.running, *([facts.next] if way.kind == "reboot" and facts.next.release != facts.running.release else [])]
    for kernel in kernels:
        if not kernel.headers and kernel.headers_offered is not True:
            package = headers_package(facts.os_id, kernel.release)
            yield InferopsError(
                f"the headers of kernel {kernel.release} are not there, and no package source offers {package}",
                where=f"/lib/modules/{kernel.release}/build",
                why="DKMS builds the module against them; without, the packages install and no module is there after the reboot",
                do=f"boot a kernel whose headers are offered, or provide {package} in a package source of the host",
            )


def _secure_boot(facts: Facts) -> Iterator[InferopsError]:
    """R48: stop with instructions instead of rebooting into a dead host."""
    if facts.secure_boot and facts.key_enrolled is not True:
        yield InferopsError(
            "Secure Boot is on and the key that would sign the module is "
            + ("not enrolled" if facts.key_enrolled is False else "not there"),
            where="mokutil --sb-state, mokutil --test-key",
            why="the kernel refuses a module that DKMS built here unless the firmware knows its key",
            do="on Ubuntu set nvidia_stack_source: distribution, whose modules are signed; else enrol the key of DKMS with "
            "mokutil --import, confirm it at the console at the next boot, and run again; or turn Secure Boot off",
        )


def _stopping(facts: Facts, wish: Wish, way: Way) -> Iterator[InferopsError]:
    """R95: what holds the cards is stopped with consent or named."""
    if way.kind not in {"reload", "reboot"}:
        return
    left = [
        holder for holder in facts.holders if holder.unit not in wish.stop_units and holder.unit != "nvidia-persistenced.service"
    ]
    if left:
        named = "; ".join(f"{holder.pid} {holder.command}" + (f" of {holder.unit}" if holder.unit else "") for holder in left[:4])
        yield InferopsError(
            f"{len(left)} processes have cards open: {named}",
            where="/proc/*/fd on /dev/nvidia*",
            why=f"{way.reason}; that ends them, and nobody has agreed to it",
            do="drain and stop them, or name their units in nvidia_stack_stop_units; end by hand what has no unit",
        )


def _reboot(facts: Facts, wish: Wish, way: Way) -> Iterator[InferopsError]:
    if way.kind != "reboot":
        return
    if facts.control_host:
        yield InferopsError(
            "this host runs the play and would have to be rebooted",
            where="control host = target (both have the same boot id)",
            why=f"{way.reason}; the play would die in the middle",
            do="run from another machine, or install with nvidia_stack_reload_allowed: true while nothing holds the cards",
        )
    elif facts.rebooted_for == way.reason:
        yield InferopsError(
            "this host was rebooted for the same reason already, and it did not help",
            where="/var/lib/inferops/nvidia_stack.reboot",
            why=way.reason,
            do="see roles/nvidia_stack/TROUBLESHOOTING.md and the kernel log; remove that file to allow one more reboot",
        )
    elif not wish.reboot_allowed:
        swap = "" if owners(facts) else ", or nvidia_stack_reload_allowed: true to swap the modules without one"
        yield InferopsError(
            "a reboot is needed and not allowed",
            where="nvidia_stack_reboot_allowed",
            why=f"{way.reason}; new files beside the old module would fail every program on the cards",
            do=f"set nvidia_stack_reboot_allowed: true{swap}",
        )
    elif facts.minute_of_day is None or not wish.in_window(facts.minute_of_day):
        now = (
            "an unknown time"
            if facts.minute_of_day is None
            else f"{facts.minute_of_day // 60:02d}:{facts.minute_of_day % 60:02d}"
        )
        if wish.reboot_window:
            yield InferopsError(
                f"a reboot is needed, and {now} is outside of the window",
                where=f"nvidia_stack_reboot_window: {wish.reboot_window}",
                why=way.reason,
                do="run again inside of the window (the host's own time)",
            )
