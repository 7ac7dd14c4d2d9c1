# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Driver branches and versions, and what each version of CUDA asks of them."""

from __future__ import annotations

import re

# CUDA release notes, table "CUDA Toolkit and Minimum Required Driver Version"; the first minor release of each toolkit.
# Any 13.x runs on branch 580 too, by minor version compatibility, but without PTX of a newer toolkit.
CUDA_OF_BRANCH = {570: "12.8", 575: "12.9", 580: "13.0", 590: "13.1", 595: "13.2", 610: "13.3", 615: "13.4"}
FLOOR_OF_CUDA = {"12": 525, "13": 580}
# The closed kernel module is no longer packaged from here on.
CLOSED_ENDS = 615

_VERSION = re.compile(r"(?:\d+:)?(\d{3})\.(\d+)(?:\.(\d+))?")


def driver_version(text: str) -> tuple[int, ...] | None:
    """Return the driver version that a package version starts with; None for anything else.

    >>> driver_version("580.95.05-1")
    (580, 95, 5)
    >>> driver_version("1.18.0-1") is None
    True
    """
    found = _VERSION.match(text)
    return None if found is None else tuple(int(part) for part in found.groups() if part is not None)


def same_version(package: str, module: str) -> bool:
    """Say whether a package and a kernel module are of one driver version."""
    return driver_version(package) is not None and driver_version(package) == driver_version(module)


def branch_of(version: str) -> int | None:
    """Return the branch of a version: its first number."""
    found = driver_version(version)
    return None if found is None else found[0]


def cuda_floor(cuda: str) -> int | None:
    """Return the lowest branch that runs a CUDA version; None for one that we do not know.

    >>> cuda_floor("13.0")
    580
    """
    return FLOOR_OF_CUDA.get(cuda.partition(".")[0])


def toolkit_newer_than(branch: int, toolkit: str) -> bool:
    """Say whether a toolkit is newer than the CUDA of a branch, so that what it compiles may not load; False where unknown.

    >>> toolkit_newer_than(580, "13-1"), toolkit_newer_than(580, "13-0")
    (True, False)
    """
    known = CUDA_OF_BRANCH.get(branch)
    if known is None:
        return False
    return _numbers(toolkit.replace("-", ".")) > _numbers(known)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
