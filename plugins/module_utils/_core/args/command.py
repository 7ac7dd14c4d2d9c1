# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Subcommands of the args area."""

from __future__ import annotations

from typing import Any


def register(commands: Any) -> None:
    """Add this area's subcommands to the argparse subparsers object."""
