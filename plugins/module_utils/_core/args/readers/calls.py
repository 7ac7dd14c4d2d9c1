# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From one ``add_argument`` call, or the keywords that would go into one, to a Flag."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

from ..flags import NO_DEFAULT, UNKNOWN, Flag
from ..outline import members
from ..source import SourceTree
from .actions import ActionClass
from .evaluate import Evaluator
from .names import ClassRef, External, FunctionRef, tail
from .run import run_function, scope_of

_PLAIN_TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "json.loads": json.loads}
_SAYS_DEPRECATED = ("deprecated", "[deprecated]", "(deprecated", "note: --")


class Definitions:
    """Turns definitions of one file into flags."""

    def __init__(self, tree: SourceTree, rel: str) -> None:
        self.rel = rel
        self.evaluator = Evaluator(tree, run_function)
        # What `ServerArgs.name` and `_declared_default("name")` mean.
        self.defaults: dict[str, Any] = {}

    def scope(self, function: ast.FunctionDef) -> dict[str, Any]:
        """Return the names the function assigns before and between its calls."""
        body = [stmt for stmt in function.body if not isinstance(stmt, (ast.For, ast.With, ast.Return))]
        return scope_of(self.evaluator, self.rel, body)

    def flag(self, call: ast.Call, scope: dict[str, Any]) -> Flag:
        """Return the flag one add_argument call defines."""
        self.evaluator.afresh()
        strings = [self.evaluator.static(arg, self.rel, scope) for arg in call.args]
        if not strings or not all(isinstance(string, str) for string in strings):
            raise ValueError(f"the name of the flag at {self.rel}:{call.lineno} is not written there")
        keywords = {str(key.arg): key.value for key in call.keywords}
        given: dict[str, Any] = {}
        for name, node in keywords.items():
            given[name] = self.default(node, scope) if name == "default" else self.evaluator.static(node, self.rel, scope)
        return self.build(tuple(str(string) for string in strings), given, keywords, f"{self.rel}:{call.lineno}")

    def default(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("ServerArgs", "cls"):
            return self.defaults.get(node.attr, UNKNOWN)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_declared_default":
            return self.defaults.get(ast.literal_eval(node.args[0]), UNKNOWN)
        return self.evaluator.default(node, self.rel, scope)

    def build(self, strings: tuple[str, ...], given: dict[str, Any], nodes: dict[str, ast.expr], source: str) -> Flag:
        """Return a Flag from the evaluated keywords of an add_argument call and their expressions."""
        text = given.get("help")
        help_text = text if isinstance(text, str) else _first_text(nodes.get("help"))
        new_flag = given.get("new_flag")
        action, act = self.action(given, nodes.get("action"))
        if act is not None:
            given = {**act.signature, **given}
            if action == "deprecated_error":
                new_flag = given.get("error_message") or help_text
        default = given.get("default", NO_DEFAULT)
        if default is NO_DEFAULT:
            default = False if action == "store_true" else True if action == "store_false" else None
        kind, convert = self.converter(nodes.get("type"), given.get("type"))
        return Flag(
            strings=strings,
            dest=str(given.get("dest") or _destination(strings)),
            action=action,
            nargs=given.get("nargs"),
            choices=self.choices(given.get("choices")),
            default=default,
            type=kind,
            required=given.get("required") is True,
            deprecated=action.startswith("deprecated") or help_text.lower().startswith(_SAYS_DEPRECATED),
            source=source,
            const=given.get("const_value", given.get("const")),
            new_flag=new_flag if isinstance(new_flag, str) else None,
            help=help_text,
            convert=convert,
            act=act,
        )

    def action(self, given: dict[str, Any], node: ast.expr | None) -> tuple[str, ActionClass | None]:
        """Return what the action is called in the table, and the class that does it where it is one of the release's own."""
        value = given.get("action", "store")
        if isinstance(value, str):
            return value, None
        if isinstance(value, ClassRef):
            act = ActionClass(self.evaluator, value, given)
            return act.kind(), act
        return ("boolean_optional" if tail(node) == "BooleanOptionalAction" else "unknown"), None

    def choices(self, value: Any) -> Any:
        if value is None:
            return None
        items = self.evaluator.iterate(value) if value is not UNKNOWN else None
        if items is None or any(item is UNKNOWN or isinstance(item, (ClassRef, External, FunctionRef)) for item in items):
            return UNKNOWN
        return tuple(items)

    def converter(self, node: ast.expr | None, value: Any) -> tuple[str | None, Callable[[str], Any] | None]:
        """Return the converter's name in the source and a function that does the same.

        One that cannot be run gives UNKNOWN for whatever it is fed, and refuses nothing.
        """
        if node is None:
            return None, None
        name = ast.unparse(node)
        if name in _PLAIN_TYPES:
            return name, _PLAIN_TYPES[name]
        if isinstance(value, FunctionRef):

            def convert(text: str) -> Any:
                self.evaluator.afresh()
                return run_function(self.evaluator, value, [text])

            return value.name, _named(value.name, convert)
        return name, _named(name, lambda text: UNKNOWN)


def _named(name: str, function: Callable[[str], Any]) -> Callable[[str], Any]:
    # argparse prints the converter's name: "invalid json_list_type value: …".
    function.__name__ = name
    return function


def _first_text(node: ast.expr | None) -> str:
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return part.value
    return ""


def _destination(strings: tuple[str, ...]) -> str:
    long = next((string for string in strings if string.startswith("--")), strings[0])
    return long.lstrip("-").replace("-", "_")


def find_class(tree: SourceTree, rel: str, name: str) -> ClassRef | None:
    """Return a top-level class of a file."""
    found = next((stmt for stmt in tree.statements(rel, name) if isinstance(stmt, ast.ClassDef)), None)
    return ClassRef(rel, found) if found is not None else None


def method(cls: ClassRef | None, name: str) -> ast.FunctionDef | None:
    """Return a method of a class."""
    found = members(cls.node).get(name, ()) if cls is not None else ()
    return next((stmt for stmt in found if isinstance(stmt, ast.FunctionDef)), None)


def field_default(evaluator: Evaluator, rel: str, node: ast.expr, scope: dict[str, Any]) -> Any:
    """Return the default of a field, including ``field(default_factory=list)``."""
    if isinstance(node, ast.Call) and tail(node.func) == "field":
        keywords = {str(key.arg): key.value for key in node.keywords}
        if "default" in keywords:
            return evaluator.default(keywords["default"], rel, scope)
        factory = keywords.get("default_factory")
        if isinstance(factory, ast.Lambda):
            return evaluator.default(factory.body, rel, scope)
        if isinstance(factory, ast.Name) and factory.id in ("list", "dict"):
            return [] if factory.id == "list" else {}
        return UNKNOWN
    return evaluator.default(node, rel, scope)


def read_fields(evaluator: Evaluator, rel: str, cls: ast.ClassDef) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Return (default by field, where by field, class attribute by name) of a dataclass-like record.

    A field without a default has None; a later one may use an earlier one's value.
    """
    fields: dict[str, Any] = {}
    where: dict[str, str] = {}
    for stmt in cls.body:
        if not isinstance(stmt, ast.AnnAssign) or not isinstance(stmt.target, ast.Name):
            continue
        if isinstance(stmt.annotation, ast.Subscript) and tail(stmt.annotation.value) == "ClassVar":
            continue
        name = stmt.target.id
        fields[name] = None if stmt.value is None else field_default(evaluator, rel, stmt.value, dict(fields))
        where[name] = f"{rel}:{stmt.lineno}"
    return fields, where, dict(fields)


def renames_of(from_cli_args: ast.FunctionDef | None) -> dict[str, str]:
    """Return {argparse destination: field} from the ``args.tp_size = args.tensor_parallel_size`` lines of from_cli_args."""
    out: dict[str, str] = {}
    for stmt in from_cli_args.body if from_cli_args else []:
        if (
            isinstance(stmt, ast.Assign)
            and isinstance(stmt.targets[0], ast.Attribute)
            and isinstance(stmt.value, ast.Attribute)
            and isinstance(stmt.value.value, ast.Name)
            and stmt.value.value.id == "args"
        ):
            out[stmt.value.attr] = stmt.targets[0].attr
    return out
