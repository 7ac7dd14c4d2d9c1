# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an argparse action class of the release does when its flag is used: its ``__call__`` is followed, not its name.

Seen: actions that raise ValueError(self.help) (0.4.6 … 0.5.7), that warn and store nothing, True, a constant or the value
(0.5.8 …), that stop with parser.error(self.error_message) (0.5.18 …), and LoRAPathAction: a mapping to 0.4.10, a list since.
"""

from __future__ import annotations

import argparse
import ast
from typing import Any

from ..flags import NOTHING, UNKNOWN
from .evaluate import Evaluator
from .names import ClassRef, Instance
from .run import Undecidable, follow

PROBE = "probe"


class ActionClass:
    """One action class with the keywords of one add_argument call. Calling it gives what it stores in the flag's destination."""

    def __init__(self, evaluator: Evaluator, cls: ClassRef, given: dict[str, Any]) -> None:
        self.evaluator = evaluator
        self.cls = cls
        self.signature = _keywords(evaluator, cls)
        self.given = {key: value for key, value in {**self.signature, **given}.items() if value is not UNKNOWN}

    @property
    def name(self) -> str:
        return self.cls.name

    def __call__(self, values: Any, option_string: str) -> Any:
        """Return the value stored, NOTHING where none is, UNKNOWN where that is not decided.

        Raises argparse.ArgumentTypeError or ValueError with the text the release stops with.
        """
        body = self.cls.node.body
        function = next((stmt for stmt in body if isinstance(stmt, ast.FunctionDef) and stmt.name == "__call__"), None)
        if function is None:
            return UNKNOWN
        namespace = Instance({})
        action = Instance({"const": None, "default": None, "help": None, **self.given, "dest": "dest"})
        arguments = (action, Instance({}), namespace, values, option_string)
        names = [arg.arg for arg in function.args.args]
        self.evaluator.afresh()
        try:
            follow(self.evaluator, self.cls.rel, function, dict(zip(names, arguments, strict=False)))
        except Undecidable:
            return UNKNOWN
        return namespace.values.get("dest", NOTHING)

    def kind(self) -> str:
        """Return the name the flag table has for what it does (see Flag)."""
        valueless = self.given.get("nargs") == 0
        values: Any = [] if valueless else PROBE if self.given.get("nargs") is None else [PROBE]
        try:
            stored = self(values, "--probe")
        except (argparse.ArgumentTypeError, ValueError):
            return "deprecated_error"
        if stored is NOTHING:
            return "deprecated"
        if stored is UNKNOWN or "deprecat" not in ast.unparse(self.cls.node).lower():
            return "unknown" if stored is UNKNOWN else "custom"
        if valueless and stored is True:
            return "deprecated_true"
        return "deprecated_alias" if stored == values and not valueless else "deprecated_const"


def _keywords(evaluator: Evaluator, cls: ClassRef) -> dict[str, Any]:
    """Return the defaults of the class's own ``__init__`` keywords, such as ``nargs=0``."""
    for stmt in cls.node.body:
        if isinstance(stmt, ast.FunctionDef) and stmt.name == "__init__" and stmt.args.defaults:
            names = [arg.arg for arg in stmt.args.args][-len(stmt.args.defaults) :]
            return {name: evaluator.static(node, cls.rel) for name, node in zip(names, stmt.args.defaults, strict=True)}
    return {}
