# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a site wants of the driver stack."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InferopsError

_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Wish:
    """The wishes, as the role's variables say them; an empty ``version`` takes any of the branch, an empty window any time."""

    branch: int
    version: str = ""
    flavour: str = "open"
    source: str = "nvidia"
    full: bool = False
    cuda: str = "13.0"
    toolkit: str = ""
    toolkit_compiler_only: bool = True
    fabric_manager: str = "auto"
    container_toolkit: bool = False
    reboot_allowed: bool = False
    reboot_window: str = ""
    reload_allowed: bool = False
    stop_units: tuple[str, ...] = ()
    own_source: str = "/etc/apt/sources.list.d/inferops-nvidia.sources"

    def __post_init__(self) -> None:
        if self.version and not re.fullmatch(rf"{self.branch}(\.\d+){{1,2}}", self.version):
            raise InferopsError(
                f"driver version {self.version} is not of branch {self.branch}",
                where="nvidia_stack_driver_version, nvidia_stack_driver_branch",
                why="the pin of the branch would keep that version out",
                do=f"give a version such as {self.branch}.95.05, or leave it empty",
            )
        if self.reboot_window and not _WINDOW.fullmatch(self.reboot_window):
            raise InferopsError(
                f"{self.reboot_window!r} is not a window of time",
                where="nvidia_stack_reboot_window",
                why="it is written HH:MM-HH:MM in the host's own time",
                do="give for example 22:00-04:00, or leave it empty for any time",
            )

    @property
    def spec(self) -> str:
        """Return the pattern that versions of the set must fit."""
        return f"{self.version}-*" if self.version else f"{self.branch}.*"

    def in_window(self, minute: int) -> bool:
        """Say whether a minute of the day is in the window; one that ends before it begins goes over midnight.

        >>> Wish(580, reboot_window="22:00-04:00").in_window(60)
        True
        """
        found = _WINDOW.fullmatch(self.reboot_window)
        if found is None:
            return True
        begin_h, begin_m, end_h, end_m = (int(part) for part in found.groups())
        begin, end = begin_h * 60 + begin_m, end_h * 60 + end_m
        return begin <= minute < end if begin <= end else minute >= begin or minute < end
