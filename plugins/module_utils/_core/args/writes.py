# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What one statement of SGLang's source writes to fields of the argument record, in every style the releases have used.

``self.X = v`` and ``server_args.X = v`` (0.4.6 on), ``setattr``, settings nested in a field (``cuda_graph_config.decode``, 0.5.14
on), values declared or returned by passes and model overrides (0.5.14 on), overrides of the published record (0.5.16 on).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from .readers.names import tail

RECORD_CLASS = "ServerArgs"
NESTED = "cuda_graph_config"
_PHASES = {"DECODE": "decode", "PREFILL": "prefill"}
_MAKERS = ("default_cuda_graph_config", "CudaGraphConfig", "with_phase")
_DECLARING = ("declare_resolution", "override", "replace", "dict", "update", "_replace")


@dataclass(frozen=True)
class Write:
    """One write. ``name``: the field, dotted where nested, ``*`` where the source computes the name."""

    name: str
    value: str
    line: int
    how: str


@dataclass
class Scope:
    """What the names of one function stand for."""

    records: set[str] = field(default_factory=set)  # names of the argument record
    nested: dict[str, str] = field(default_factory=dict)  # names of a nested setting, and which
    setters: dict[str, ast.FunctionDef] = field(default_factory=dict)  # local functions that set what their arguments name
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # loop variables over literal names
    spread: set[str] = field(default_factory=set)  # dicts handed to an override as **name
    argument_code: bool = False


def scope_of(function: ast.FunctionDef | ast.AsyncFunctionDef, outer: Scope, own_class: str | None) -> Scope:
    """Return what is known of the names in a function before its body runs."""
    scope = Scope(set(outer.records), dict(outer.nested), dict(outer.setters), dict(outer.words), set(), outer.argument_code)
    arguments = function.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        note = ast.unparse(one.annotation) if one.annotation is not None else ""
        if one.arg.endswith("server_args") or RECORD_CLASS in note:
            scope.records.add(one.arg)
    if own_class == RECORD_CLASS:
        scope.records.add("self")
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef) and node is not function and _sets_by_name(node):
            scope.setters[node.name] = node
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, (ast.Tuple, ast.List)):
            words = [one.value for one in node.iter.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(words) == len(node.iter.elts):
                scope.words[node.target.id] = tuple(words)
        elif isinstance(node, ast.Call) and _called(node) in ("override", "declare_resolution"):
            scope.spread |= {key.value.id for key in node.keywords if key.arg is None and isinstance(key.value, ast.Name)}
    return scope


def note_names(stmt: ast.stmt, scope: Scope) -> None:
    """Follow an assignment that gives the record, or a setting nested in it, another name."""
    if not isinstance(stmt, (ast.Assign, ast.AnnAssign)) or stmt.value is None:
        return
    for target in stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]:
        if isinstance(target, ast.Name):
            path = _nested_path(stmt.value, scope)
            if path is not None:
                scope.nested[target.id] = path
            elif is_record(stmt.value, scope) or _called(stmt.value) == "get_global_server_args":
                scope.records.add(target.id)


def writes_of(stmt: ast.stmt, names: Collection[str], scope: Scope) -> Iterator[Write]:
    """Return what a simple statement writes to the named fields."""
    if isinstance(stmt, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and stmt.value is not None:
        for target in stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]:
            for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                yield from _assigned(one, stmt.value, names, scope)
    for node in ast.walk(stmt):
        if isinstance(node, ast.Call):
            yield from _called_with(node, names, scope)
        elif isinstance(node, ast.Dict) and (scope.argument_code or _spread_dict(stmt, scope)):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in names:
                    yield Write(str(key.value), ast.unparse(value), key.lineno, "returned")


def _spread_dict(stmt: ast.stmt, scope: Scope) -> bool:
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id in scope.spread for target in targets)


def _assigned(target: ast.expr, value: ast.expr, names: Collection[str], scope: Scope) -> Iterator[Write]:
    if isinstance(target, ast.Attribute):
        nested = _nested_path(target.value, scope)
        if nested is not None and NESTED in names:
            yield Write(f"{nested}.{target.attr}", ast.unparse(value), target.lineno, "attribute")
        elif target.attr in names and (scope.argument_code or is_record(target.value, scope)):
            yield Write(target.attr, ast.unparse(value), target.lineno, "attribute")
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value in names:
        holder = target.value
        if scope.argument_code or (isinstance(holder, ast.Name) and holder.id in scope.spread):
            yield Write(str(target.slice.value), ast.unparse(value), target.lineno, "returned")


def _called_with(call: ast.Call, names: Collection[str], scope: Scope) -> Iterator[Write]:
    name = _called(call)
    if name in ("setattr", "__setattr__") and len(call.args) == 3:
        yield from _set_by_name(call, names, scope)
    elif name in scope.setters and NESTED in names and isinstance(call.func, ast.Name):
        yield from _through_setter(call, scope.setters[name])
    elif name == "with_phase" and NESTED in names and len(call.args) > 1:
        phase = _phase(call.args[1])
        for key in call.keywords:  # **name: settings that the source names elsewhere
            text = ast.unparse(key.value)
            setting, text = (key.arg, text) if key.arg is not None else ("*", f"the settings in {text}")
            yield Write(f"{NESTED}.{phase}.{setting}", text, call.lineno, "declared")
    if name not in _DECLARING and not (scope.argument_code and ("declare" in name or "override" in name)):
        return
    late = name in ("declare_resolution", "override") or (
        name == "replace" and bool(call.args) and is_record(call.args[0], scope)
    )
    for key in call.keywords:
        if key.arg in names and (scope.argument_code or late):
            if key.arg == NESTED and _called(key.value) == "with_phase":
                continue  # said by the phase itself
            yield Write(str(key.arg), ast.unparse(key.value), key.lineno, "override" if not scope.argument_code else "declared")


def _set_by_name(call: ast.Call, names: Collection[str], scope: Scope) -> Iterator[Write]:
    holder, key, value = call.args
    nested = _nested_path(holder, scope)
    ours = nested is not None or is_record(holder, scope)
    if isinstance(key, ast.Constant):
        if key.value in names and (ours or scope.argument_code):
            yield Write(str(key.value), ast.unparse(value), call.lineno, "setattr")
    elif isinstance(key, ast.Name) and key.id in scope.words:
        for word in scope.words[key.id]:
            if word in names:
                yield Write(word, ast.unparse(value), call.lineno, "setattr")
    elif nested is not None and NESTED in names:
        yield Write(f"{nested}.*", ast.unparse(value), call.lineno, "setattr")
    elif nested is None and ours:
        yield Write("*", ast.unparse(value), call.lineno, "setattr")


def _through_setter(call: ast.Call, setter: ast.FunctionDef) -> Iterator[Write]:
    given: Mapping[str, ast.expr] = dict(zip([one.arg for one in setter.args.args], call.args, strict=False))
    inner = [one for one in ast.walk(setter) if isinstance(one, ast.Call) and _called(one) == "setattr"]
    target, name, new = inner[0].args[:3]
    words = [_phase(given[one.id]) for one in ast.walk(target) if isinstance(one, ast.Name) and one.id in given]
    key = given.get(ast.unparse(name))
    text = key.value if isinstance(key, ast.Constant) else "*"
    value = given.get(ast.unparse(new))
    yield Write(".".join([NESTED, *words, str(text)]), ast.unparse(value) if value is not None else "?", call.lineno, "setattr")


def _sets_by_name(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Call) and _called(node) == "setattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Name)
        for node in ast.walk(function)
    )


def _nested_path(node: ast.expr | None, scope: Scope) -> str | None:
    """Return ``cuda_graph_config.decode`` for an expression that is that part of the record, whatever it is called here."""
    if isinstance(node, ast.Name):
        return scope.nested.get(node.id)
    if isinstance(node, ast.Attribute):
        if node.attr == NESTED:
            return NESTED
        inner = _nested_path(node.value, scope)
        return f"{inner}.{node.attr}" if inner else None
    if isinstance(node, ast.Call):
        name = _called(node)
        if name in _MAKERS:
            return NESTED
        if name in ("deepcopy", "copy", "replace") and node.args:
            return _nested_path(node.args[0], scope)
        if name == "getattr" and len(node.args) > 1:
            inner = _nested_path(node.args[0], scope)
            key = node.args[1]
            if inner is not None:
                return f"{inner}.{_phase(key)}"
            return NESTED if isinstance(key, ast.Constant) and key.value == NESTED else None
    return None


def is_record(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is the argument record, by its name, its annotation or the function that returns it."""
    if isinstance(node, ast.Name):
        return node.id in scope.records or node.id.endswith("server_args")
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("server_args")
    return isinstance(node, ast.Call) and _called(node) in ("get_global_server_args", "get_server_args")


def _phase(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return _PHASES.get(node.attr, "*") if isinstance(node, ast.Attribute) else "*"


def _called(node: ast.expr | None) -> str:
    return tail(node.func) if isinstance(node, ast.Call) else ""
