# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A phase of a transaction that ended badly, with its reasons."""

from __future__ import annotations


class PhaseError(Exception):
    """``reasons`` are sentences; the first is the one to show."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = list(reasons)
