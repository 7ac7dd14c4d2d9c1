# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reader for releases whose flags are ``add_argument`` calls in ServerArgs.add_cli_args (seen in 0.4.3 … 0.5.13)."""

from __future__ import annotations

import ast

from ..flags import FlagTable
from ..source import LANDMARK, SourceTree
from .calls import Definitions, find_class, method, read_fields, renames_of

STYLE = "add_argument calls in ServerArgs.add_cli_args"
# Fewer than this and the flags are somewhere else; the smallest release read (0.4.3) has about 140.
FEWEST_CALLS = 60


def fits(tree: SourceTree) -> bool:
    """Whether nearly all flags of this release are add_argument calls."""
    cls = find_class(tree, LANDMARK, "ServerArgs")
    body = method(cls, "add_cli_args")
    return body is not None and len(argument_calls(body)) >= FEWEST_CALLS


def read(tree: SourceTree) -> FlagTable:
    """Read the flag table."""
    cls = find_class(tree, LANDMARK, "ServerArgs")
    body = method(cls, "add_cli_args")
    if cls is None or body is None:
        raise AssertionError("fits() was not asked first")
    definitions = Definitions(tree, LANDMARK)
    fields, where, shown = read_fields(definitions.evaluator, cls.rel, cls.node)
    definitions.defaults = shown
    scope = definitions.scope(body)
    flags = [definitions.flag(call, scope) for call in argument_calls(body)]
    return FlagTable(tree.version, STYLE, tuple(flags), fields, where, renames_of(method(cls, "from_cli_args")))


def argument_calls(function: ast.FunctionDef) -> list[ast.Call]:
    """Return the ``parser.add_argument(…)`` calls of a function in written order."""
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
    ]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))
