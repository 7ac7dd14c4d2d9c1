# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Abstract interpretation of SGLang's own argument code, read from its source and never imported."""

from __future__ import annotations

from .resolve import Resolution, resolve

__all__ = ["Resolution", "resolve"]
