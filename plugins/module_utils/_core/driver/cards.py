# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a PCI device id says about a card: its architecture, which flavours of the kernel module drive it, since which branch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One generation: ``first_branch`` is the oldest driver branch that knows it, None where nobody needs to ask any more."""

    name: str
    works_open: bool
    works_closed: bool
    first_branch: int | None = None


PRE_TURING = Architecture("before Turing", False, True)
TURING_TO_ADA = Architecture("Turing, Ampere or Ada", True, True)
HOPPER = Architecture("Hopper", True, True, 525)
BLACKWELL = Architecture("Blackwell", True, False, 570)

# First and last device id of each range. Source: the public PCI id database. Flavours: NVIDIA Driver Installation Guide, "Kernel
# Modules" (Turing and newer run the open modules, Blackwell nothing else). Branch 570 is the first with GB20x cards.
RANGES = (
    (0x0001, 0x1DFF, PRE_TURING),
    (0x1E00, 0x22FF, TURING_TO_ADA),
    (0x2300, 0x237F, HOPPER),
    (0x2380, 0x28FF, TURING_TO_ADA),
    (0x2900, 0x2FFF, BLACKWELL),
    (0x3180, 0x31FF, BLACKWELL),
)


def architecture(device_id: int) -> Architecture | None:
    """Return the generation of a card, None where the id is in no range that we know.

    >>> architecture(0x2BB5).name  # RTX PRO 6000 Blackwell Server Edition
    'Blackwell'
    """
    return next((found for first, last, found in RANGES if first <= device_id <= last), None)
