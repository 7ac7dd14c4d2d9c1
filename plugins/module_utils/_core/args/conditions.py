# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The opposite of a condition of the source, as one reads it."""

from __future__ import annotations

import ast

# Orderings are left as they stand: of two sets neither may be a part of the other.
_OPPOSITE = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}


def negated(test: ast.expr) -> str:
    """Return what holds where a condition does not. It is kept with the node: a check comes to the same conditions often.

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
        return _text(test.operand)
    if isinstance(test, ast.Compare):
        other = _OPPOSITE.get(type(test.ops[0]))
        if other is not None and len(test.ops) == 1:
            return _text(ast.Compare(test.left, [other()], test.comparators))
        return f"not ({_text(test)})"
    return _text(ast.UnaryOp(ast.Not(), test))


def _text(node: ast.expr) -> str:
    try:
        return " ".join(ast.unparse(node).split())
    except Exception:  # a tree as deep as hostile source makes it
        return type(node).__name__
