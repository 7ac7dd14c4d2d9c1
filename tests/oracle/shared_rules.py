# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which settings and environment variables a release's argument code looks at, and which it looks at together.

A plain walk over the source text, on purpose not the collection's own reader: what that one misses is still asked for.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

# Guards that mention more settings than this are dispatchers; their pairs tell nothing.
MOST_TOGETHER = 8
_GETTERS = ("getenv", "get_bool_env_var", "get_int_env_var", "get_float_env_var", "is_set")


@dataclass
class Rules:
    """How often guards name a field, two fields, a variable; values that guards compare a field with."""

    fields: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    environment: Counter[str] = field(default_factory=Counter)
    values: dict[str, set[object]] = field(default_factory=dict)


def argument_files(package: Path) -> list[Path]:
    """Return the files of one unpacked release (the ``sglang`` folder) that hold argument code."""
    srt = package / "srt"
    return sorted([*srt.glob("server_args.py"), *srt.glob("arg_groups/**/*.py")])


def read_rules(package: Path, names: Collection[str]) -> Rules:
    rules, known = Rules(), frozenset(names)
    for path in argument_files(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for guard, body in _guards(tree, ()):
            mentioned = sorted(_fields(guard, known) | _written(body, known))
            rules.fields.update(mentioned)
            if len(mentioned) <= MOST_TOGETHER:
                rules.pairs.update(combinations(mentioned, 2))
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                _compared(node, known, rules)
            elif isinstance(node, ast.Call):
                rules.environment.update(_variables(node))
    return rules


def _guards(node: ast.AST, outer: tuple[ast.expr, ...]) -> Iterator[tuple[tuple[ast.expr, ...], list[ast.stmt]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield from _guards(child, ())
        elif isinstance(child, ast.If):
            inner = (*outer, child.test)
            yield inner, child.body
            for one in (*child.body, *child.orelse):
                yield from _guards(ast.Module([one], []), inner)
        elif isinstance(child, ast.Assert):
            yield (*outer, child.test), []
        else:
            yield from _guards(child, outer)


def _fields(guards: tuple[ast.expr, ...], known: frozenset[str]) -> set[str]:
    return {node.attr for guard in guards for node in ast.walk(guard) if isinstance(node, ast.Attribute) and node.attr in known}


def _written(body: list[ast.stmt], known: frozenset[str]) -> set[str]:
    found = set()
    for node in (node for one in body if not isinstance(one, ast.If) for node in ast.walk(one)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in known:
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg in known:
            found.add(node.arg)
    return found


def _compared(node: ast.Compare, known: frozenset[str], rules: Rules) -> None:
    if not isinstance(node.left, ast.Attribute) or node.left.attr not in known:
        return
    for right in node.comparators:
        for one in right.elts if isinstance(right, (ast.List, ast.Tuple, ast.Set)) else [right]:
            if isinstance(one, ast.Constant) and isinstance(one.value, (str, int, float)) and not isinstance(one.value, bool):
                rules.values.setdefault(node.left.attr, set()).add(one.value)


def _variables(call: ast.Call) -> Iterator[str]:
    """Yield names in ``os.environ.get("X")``, ``get_bool_env_var("X")``, ``envs.X.get()``."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.isupper():
        if name in _GETTERS or (name == "get" and "environ" in ast.unparse(function)):
            yield first.value
    elif match := re.fullmatch(r"envs\.([A-Z0-9_]+)\.(?:get|is_set)", ast.unparse(function)):
        yield match[1]
