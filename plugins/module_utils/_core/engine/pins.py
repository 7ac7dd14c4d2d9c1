# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is installed against the lock, and against what the release itself asks for in its metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .lock import Lock
from .requirements import normal_name, parse_requirement, satisfies
from .wheels import metadata_fields

# A build of another version of these loads, and then computes nonsense or dies in a kernel.
KERNEL_PACKAGES = ("torch", "sgl-kernel", "sglang-kernel", "flashinfer-python", "flashinfer-cubin", "cuda-python", "triton")


@dataclass(frozen=True)
class Difference:
    """A package that is not as asked: ``found`` is None where it is not there at all."""

    name: str
    asked: str
    found: str | None
    by: str

    @property
    def blocks(self) -> bool:
        """Another build than asked is refused; one that the lock leaves out is said: the lock is the user's choice."""
        return self.by == "lock" or (self.found is not None and self.name in KERNEL_PACKAGES)

    def text(self) -> str:
        found = "it is not there" if self.found is None else f"{self.found} is there"
        return f"{self.name}: {self.asked or 'any version'} asked by the {self.by}, {found}"


def installed(site_packages: Path) -> dict[str, str]:
    """Return {package: version} of an environment, by the metadata that lies beside the packages."""
    found = {}
    for path in sorted(site_packages.glob("*.dist-info/METADATA")):
        fields = metadata_fields(path.read_text(encoding="utf-8", errors="replace"))
        if fields.get("name") and fields.get("version"):
            found[normal_name(fields["name"][0])] = fields["version"][0]
    return found


def against_lock(lock: Lock, have: Mapping[str, str], marker: Mapping[str, str]) -> list[Difference]:
    """Return what differs from the lock, in its order."""
    return [
        Difference(pin.name, f"=={pin.version}", have.get(pin.name), "lock")
        for pin in lock.pins
        if pin.counts(marker)
        and satisfies(have.get(pin.name, ""), f"=={pin.version}") is not True
        and have.get(pin.name) != pin.version
    ]


def against_release(requires: Iterable[str], have: Mapping[str, str], marker: Mapping[str, str]) -> list[Difference]:
    """Return what differs from the release's own requirements; what cannot be judged is left out."""
    out = []
    for line in requires:
        requirement = parse_requirement(line)
        if requirement is None or requirement.wanted(marker) is not True:
            continue
        found = have.get(requirement.name)
        if found is None or satisfies(found, requirement.specifier) is False:
            out.append(Difference(requirement.name, requirement.specifier, found, "release"))
    return out


def notes(differences: Iterable[Difference]) -> list[str]:
    """Return what is said of differences that do not block: absent ones in one line, others each."""
    quiet = [difference for difference in differences if not difference.blocks]
    absent = [difference.name for difference in quiet if difference.found is None]
    told = [difference.text() for difference in quiet if difference.found is not None]
    if absent:
        names = ", ".join(absent[:6]) + (f" and {len(absent) - 6} more" if len(absent) > 6 else "")
        told.append(f"{len(absent)} packages that the release asks for are not in the lock: {names}")
    return told
