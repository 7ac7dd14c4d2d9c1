# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of watched statements an interpretation came to: in order, under which conditions, on every path or on some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Visit:
    """One arrival at a watched statement.

    source: file:line of the statement. calls: the functions under way, outermost first. guards: every condition it stood under,
    those of the callers first. certain: every path the release can take for this command line comes here; else needs decide.
    """

    source: str
    calls: tuple[str, ...]
    guards: tuple[str, ...]
    certain: bool
    needs: frozenset[str]
    because: frozenset[str]


def visit_of(frames: Sequence[Any], line: int, doubt: Sequence[frozenset[str]], pending: Sequence[Sequence[Any]]) -> Visit:
    """Return the arrival at a line of the innermost frame.

    Uncertain are the arms of an open condition (doubt), and what follows a place that other paths left early (pending exits).
    """
    guards = [guard for frame in frames for guard in frame.guards]
    left = [exit_.needs for exits in pending for exit_ in exits]
    return Visit(
        source=f"{frames[-1].module.rel}:{line}",
        calls=tuple(frame.function.name for frame in frames if frame.function is not None),
        guards=tuple(dict.fromkeys(guard.text for guard in guards)),
        certain=not doubt and not left,
        needs=frozenset().union(*doubt, *left),
        because=frozenset().union(*(guard.reads for guard in guards)),
    )
