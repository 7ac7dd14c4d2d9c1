# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reader for releases whose flags are derived from fields annotated ``A[type, help or Arg(...)]``.

Seen as fields of ServerArgs in srt/server_args.py (0.5.14 … 0.5.19) and as namespace classes in srt/arg_groups/fields/*.py put
together in the order of srt/arg_groups/field_order.py (0.5.20 … 0.5.23). What is left of add_argument calls comes after them.
How a field becomes a flag: srt/arg_groups/arg_utils.py, add_cli_args_from_dataclass.
"""

from __future__ import annotations

import ast
from typing import Any

from ..flags import NO_DEFAULT, Flag, FlagTable
from ..source import LANDMARK, SourceTree
from .add_argument import argument_calls
from .calls import Definitions, field_default, find_class, method
from .names import ClassRef, tail

FIELDS = "srt/arg_groups/fields/"
STYLE = "annotated fields"
STYLE_ONE = "annotated fields of ServerArgs in srt/server_args.py"
STYLE_SPLIT = "annotated fields in srt/arg_groups/fields/*.py"


def fits(tree: SourceTree) -> bool:
    """Whether the fields of this release are annotated."""
    cls = find_class(tree, LANDMARK, "ServerArgs")
    if method(cls, "add_cli_args") is None or cls is None:
        return False
    return any(_is_annotated(stmt) for source in _namespaces(tree, cls) for stmt in source.node.body)


def read(tree: SourceTree) -> FlagTable:
    """Read the flag table."""
    cls = find_class(tree, LANDMARK, "ServerArgs")
    body = method(cls, "add_cli_args")
    if cls is None or body is None:
        raise AssertionError("fits() was not asked first")
    definitions = Definitions(tree, LANDMARK)
    sources = _namespaces(tree, cls)
    declared: dict[str, tuple[str, ast.AnnAssign]] = {}
    for source in sources:
        for stmt in source.node.body:
            if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and not _is_derived(stmt):
                declared[stmt.target.id] = (source.rel, stmt)
    fields: dict[str, Any] = {}
    where: dict[str, str] = {}
    flags: list[Flag] = []
    for name in _ordered(definitions, sources, list(declared)):
        rel, stmt = declared[name]
        default = NO_DEFAULT if stmt.value is None else field_default(definitions.evaluator, rel, stmt.value, dict(fields))
        fields[name] = None if default is NO_DEFAULT else default
        where[name] = f"{rel}:{stmt.lineno}"
        if _is_annotated(stmt):
            flag = _flag(definitions, rel, stmt, default)
            flags += [] if flag is None else [flag]
    definitions.defaults = fields
    scope = definitions.scope(body)
    flags += [definitions.flag(call, scope) for call in argument_calls(body)]
    style = STYLE_ONE if sources == [cls] else STYLE_SPLIT
    return FlagTable(tree.version, style, tuple(flags), fields, where)


def _namespaces(tree: SourceTree, cls: ClassRef) -> list[ClassRef]:
    """Return the classes that hold the fields, in the order they are collected."""
    if any(_is_annotated(stmt) for stmt in cls.node.body):
        return [cls]
    found: dict[str, ClassRef] = {}
    for rel in tree.glob(FIELDS):
        for stmt in tree.required(rel).body:
            if isinstance(stmt, ast.ClassDef) and any(_is_annotated(inner) for inner in stmt.body):
                found[stmt.name] = ClassRef(rel, stmt)
    named = [name for name in _listed(tree, "_INPUT_NAMESPACES") if name in found]
    return [found[name] for name in named] or list(found.values())


def _listed(tree: SourceTree, variable: str) -> list[str]:
    for stmt in tree.statements(LANDMARK, variable):
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) and stmt.targets[0].id == variable:
            return [node.id for node in ast.walk(stmt.value) if isinstance(node, ast.Name)]
    return []


def _ordered(definitions: Definitions, sources: list[ClassRef], names: list[str]) -> list[str]:
    order = definitions.evaluator.names.get("srt/arg_groups/field_order.py", "POSITIONAL_FIELD_ORDER")
    known = [name for name in order if name in names] if isinstance(order, tuple) and len(sources) > 1 else []
    return known + [name for name in names if name not in set(known)]


def _is_annotated(stmt: ast.stmt) -> bool:
    if not isinstance(stmt, ast.AnnAssign) or not isinstance(stmt.annotation, ast.Subscript):
        return False
    return tail(stmt.annotation.value) in ("A", "Annotated") and not _is_derived(stmt)


def _is_derived(stmt: ast.AnnAssign) -> bool:
    """Whether a namespace entry is computed at publication and so no input: ``A[int, Derived(...)]``; or a class variable."""
    head = stmt.annotation.value if isinstance(stmt.annotation, ast.Subscript) else stmt.annotation
    if tail(head) == "ClassVar":
        return True
    return any(_callee(part) == "Derived" for part in _parts(stmt.annotation)[1:])


def _parts(annotation: ast.expr) -> list[ast.expr]:
    if isinstance(annotation, ast.Subscript):
        return annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    return [annotation]


def _callee(node: ast.expr) -> str:
    return tail(node.func) if isinstance(node, ast.Call) else ""


def _flag(definitions: Definitions, rel: str, stmt: ast.AnnAssign, default: Any) -> Flag | None:
    """Return the flag a field gives, None for one without a command-line surface."""
    if not isinstance(stmt.target, ast.Name):
        return None
    name, (kind, *meta) = stmt.target.id, _parts(stmt.annotation)
    nodes: dict[str, ast.expr] = {}
    for part in meta:
        if isinstance(part, ast.Call) and _callee(part) == "Arg":
            nodes = {str(key.arg): key.value for key in part.keywords}
            nodes |= {"help": part.args[0]} if part.args else {}
            break
        if _callee(part) != "NS":
            nodes = {"help": part}
            break
    else:
        return None
    meta_values = {key: definitions.evaluator.static(node, rel) for key, node in nodes.items()}
    if meta_values.get("no_cli") is True:
        return None
    cli_name = str(meta_values.get("cli_name") or "--" + name.replace("_", "-"))
    strings = (cli_name, *[str(alias) for alias in meta_values.get("aliases") or ()])
    given: dict[str, Any] = {"dest": name, "help": meta_values.get("help"), "default": default}
    inner = _without_optional(kind)
    how: dict[str, ast.expr] = {key: nodes[key] for key in ("help",) if key in nodes}
    if "action" in nodes:
        extra = meta_values.get("action_kwargs")
        given |= {"action": meta_values["action"]} | (extra if isinstance(extra, dict) else {})
        how["action"] = nodes["action"]
        if isinstance(given.get("type"), type):
            given["type"], how["type"] = None, ast.Name(given["type"].__name__)
    else:
        known = default is not NO_DEFAULT
        _shape(definitions, rel, inner, nodes, meta=meta_values, given=given, how=how, has_default=known)
    return definitions.build(strings, given, how, f"{rel}:{stmt.lineno}")


def _shape(
    definitions: Definitions,
    rel: str,
    inner: ast.expr,
    nodes: dict[str, ast.expr],
    *,
    meta: dict[str, Any],
    given: dict[str, Any],
    how: dict[str, ast.expr],
    has_default: bool,
) -> None:
    """Fill in action, type, nargs, choices as the release's own derivation does, in its order of cases."""
    for key in ("choices", "const"):
        if key in meta and meta[key] not in (None, [], ()):
            given[key] = meta[key]
    container = tail(inner.value) if isinstance(inner, ast.Subscript) else ""
    element = inner
    if container == "Literal":
        literals = [definitions.evaluator.static(part, rel) for part in _parts(inner)]
        given.setdefault("choices", literals)
        element = ast.Name(type(literals[0]).__name__ if literals else "str")
    elif container in ("List", "list") and "type_parser" not in nodes:
        element = _parts(inner)[0]
        given["nargs"] = meta.get("nargs") or "+"
    elif tail(inner) == "bool":
        given.pop("choices", None)
        given.pop("const", None)
        given["action"] = "store_true"
        return
    else:
        if meta.get("nargs"):
            given["nargs"] = meta["nargs"]
        required = meta.get("required")
        given["required"] = required is True or (required is None and not has_default)
    name = tail(element)
    if "type_parser" in nodes:
        how["type"], given["type"] = nodes["type_parser"], meta["type_parser"]
    else:
        how["type"] = ast.Name(name if name in ("int", "float") else "str")


def _without_optional(node: ast.expr) -> ast.expr:
    """Return X for ``Optional[X]``, ``Union[X, None]`` and ``X | None``; anything else as it is."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _without_optional(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.Subscript):
        name = tail(node.value)
        if name == "Optional":
            return _parts(node)[0]
        if name == "Union":
            return _only_one(_parts(node), node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _only_one(_alternatives(node), node)
    return node


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _alternatives(node.left) + _alternatives(node.right)
    return [node]


def _only_one(parts: list[ast.expr], otherwise: ast.expr) -> ast.expr:
    rest = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    return rest[0] if len(rest) == 1 else otherwise
