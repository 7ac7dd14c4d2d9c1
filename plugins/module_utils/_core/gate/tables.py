# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Columns for a terminal: figures to the right, words to the left, two blanks between; nothing is cut off."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

WIDTH = 80


def aligned(rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> list[str]:
    """Return rows as lines of equal columns; columns named in ``left`` begin at the left. A column without content is left out.

    >>> aligned([("load", "tok/s", ""), ("1", "35.6", ""), ("16", "156.4", "")])
    ['load  tok/s', '1      35.6', '16    156.4']
    """
    filled = [place for place in range(len(rows[0])) if any(row[place] for row in rows)]
    widths = {place: max(len(row[place]) for row in rows) for place in filled}
    return [
        "  ".join(
            row[place].ljust(widths[place]) if place in left else row[place].rjust(widths[place]) for place in filled
        ).rstrip()
        for row in rows
    ]


def folded(label: str, text: str, *, width: int = WIDTH) -> list[str]:
    """Return a labelled sentence folded to a width, its further lines below its first word; long words stay whole.

    >>> folded("why:   ", "a b c d", width=11)
    ['why:   a b', '       c d']
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]
