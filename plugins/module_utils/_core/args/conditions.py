# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions of the source and their opposites, as one reads them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Union

# A text that is made when somebody reads it: of the conditions a check comes to, few are shown.
Words = Union[str, Callable[[], str]]  # noqa: UP007  (the sanity test's pylint reads X | Y as an operation)
# Orderings are left as they stand: of two sets neither may be a part of the other.
_OPPOSITE = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}


def said(words: Words) -> str:
    return words if isinstance(words, str) else words()


def text_of(node: ast.AST) -> str:
    """Return the source of an expression on one line. It is kept with the node: a check comes to the same conditions often."""
    known: str | None = getattr(node, "one_line", None)
    if known is None:
        try:
            known = " ".join(ast.unparse(node).split())
        except Exception:  # a tree as deep as hostile source makes it
            known = type(node).__name__
        node.one_line = known  # type: ignore[attr-defined]
    return known


def negated(test: ast.expr) -> str:
    """Return what holds where a condition does not. It is kept with the node too.

    >>> [negated(ast.parse(text, mode="eval").body) for text in ("not (a or b)", "a is None", "(a or b) in c", "a.b", "a and b")]
    ['a or b', 'a is not None', '(a or b) not in c', 'not a.b', 'not (a and b)']
    >>> negated(ast.parse("a < b", mode="eval").body)
    'not (a < b)'
    """
    known: str | None = getattr(test, "negated", None)
    if known is None:
        known = test.negated = _negated(test)  # type: ignore[attr-defined]
    return known


def _negated(test: ast.expr) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return text_of(test.operand)
    if isinstance(test, ast.Compare):
        other = _OPPOSITE.get(type(test.ops[0]))
        if other is not None and len(test.ops) == 1:
            return text_of(ast.Compare(test.left, [other()], test.comparators))
        return f"not ({text_of(test)})"
    return text_of(ast.UnaryOp(ast.Not(), test))
