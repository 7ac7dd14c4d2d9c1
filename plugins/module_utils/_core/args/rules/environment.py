# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Environment variables that act as arguments: a name nothing in the release reads is ignored without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..context import Context
from ..findings import Finding
from ..source import SourceTree
from ..suggest import near_name

PREFIX = "SGLANG_"
_NAME = re.compile(rf"\b{PREFIX}[A-Z0-9_]+\b")
# Where nearly all are declared since 0.5.3; the rest of the package is searched only for a name that is not here.
DECLARED = ("srt/environ.py", "srt/server_args.py")


def unread(ctx: Context) -> Iterator[Finding]:
    """Name each SGLANG_ variable of the environment that no file of the release mentions, with the one probably meant."""
    mine = [name for name in ctx.env if name.startswith(PREFIX)]
    if not set(mine) - _mentioned(ctx.tree, DECLARED):
        return
    known = _mentioned(ctx.tree, tuple(ctx.tree.glob("")))
    for name in (name for name in mine if name not in known):
        meant = near_name(name, known)
        yield Finding(
            "SGA112",
            "advice" if meant else "info",
            f"nothing in SGLang {ctx.tree.version} reads {name}" + (f"; did you mean {meant}?" if meant else ""),
            where=f"environment, {name}",
            why="a variable nobody reads changes nothing, and nothing says so",
            do=f"write {meant}" if meant else "remove it, unless a plugin or kernel package reads it",
        )


def _mentioned(tree: SourceTree, files: tuple[str, ...]) -> set[str]:
    return {name for rel in files for name in _NAME.findall(tree.read(rel) or "")}
