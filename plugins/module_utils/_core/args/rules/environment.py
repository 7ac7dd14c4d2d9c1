# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Environment variables that act as arguments: a name nothing in the release reads is ignored without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..context import Context
from ..findings import Finding
from ..suggest import near_name

PREFIX = "SGLANG_"
# What stands before is looked at last: a pattern that begins with plain text is found ten times as fast.
_NAME = re.compile(rf"{PREFIX}(?<!\w{PREFIX})[A-Z0-9_]+\b")
# Where nearly all are declared since 0.5.3; the rest of the package is searched only for a name that is not here.
DECLARED = ("srt/environ.py", "srt/server_args.py")


def unread(ctx: Context) -> Iterator[Finding]:
    """Name each SGLANG_ variable of the environment that no file of the server mentions, with the one probably meant."""
    mine = [name for name in ctx.env if name.startswith(PREFIX)]
    known = {name for rel in DECLARED for name in _NAME.findall(ctx.tree.read(rel) or "")} if mine else set()
    left = set(mine) - known
    if not left:
        return
    for dummy, text in ctx.tree.search(PREFIX):
        known.update(_NAME.findall(text))
        left -= known
        if not left:
            return
    for name in (name for name in mine if name in left):
        meant = near_name(name, known)
        yield Finding(
            "SGA112",
            "advice" if meant else "info",
            f"nothing in the server of SGLang {ctx.tree.version} reads {name}" + (f"; did you mean {meant}?" if meant else ""),
            where=f"environment, {name}",
            why="a variable nobody reads changes nothing, and nothing says so",
            do=f"write {meant}" if meant else "remove it, unless a plugin or kernel package reads it",
        )
