# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How SGLang records decisions: declarations over the raw input, and the views that read through both.

0.5.14 … 0.5.23: srt/arg_groups/overrides.py and model_override_base.py. Older releases write on the record itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .interpret.frames import Site
from .interpret.operators import lift
from .interpret.values import MISSING, SMEARED, Class, Dict, External, Instance, List, Record, Unknown, View
from .outline import fields


def _record(value: Any) -> Any:
    return value.record if isinstance(value, View) else value


def _declare(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    record = _record(args[0])
    if not isinstance(record, Record):
        return Unknown(("record",))
    sites = dict(interpreter.call_sites)
    for name, value in kwargs.items():
        if name in ("source", "server_args"):
            continue
        if name == "**":
            interpreter.smeared_declaration(record, value)
            continue
        site = sites.get(name) or interpreter.site(interpreter.frames[-1], None, value)
        if isinstance(value, Instance):
            _declare_leaves(interpreter, record, name, value, site)
        interpreter.decide(record, name, value, site)
    return None


def _declare_leaves(interpreter: Any, record: Record, name: str, value: Instance, site: Site) -> None:
    """Note where the leaves of a nested setting that differ from before were set."""
    before = record.decided.cells.get(name, record.cells.get(name))
    for path, new, leaf_site in leaves(interpreter, value, name):
        old = leaf_at(before, path[len(name) + 1 :])
        if old is MISSING or not _same(old, new):
            interpreter.write(record.origin, path, (leaf_site or site,))


def _same(a: Any, b: Any) -> bool:
    from .interpret.values import same

    return same(a, b)


def leaves(interpreter: Any, value: Any, prefix: str) -> list[tuple[str, Any, Site | None]]:
    """Return (dotted name, value, site) of every leaf below a nested setting."""
    out: list[tuple[str, Any, Site | None]] = []
    for key, one in value.cells.items():
        if isinstance(one, Instance) and one.cls is not None and "_value_" not in one.cells:
            out += leaves(interpreter, one, f"{prefix}.{key}")
        else:
            held = interpreter.leaf_sites.get((id(value), key))
            out.append((f"{prefix}.{key}", one, held[1] if held else None))
    return out


def leaf_at(value: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(value, Instance):
            return MISSING
        value = value.cells.get(key, MISSING)
    return value


def _view(kind: str) -> Callable[..., Any]:
    def run(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        record = _record(args[0] if args else kwargs.get("server_args"))
        return View(record, kind) if isinstance(record, Record) else record

    return run


def _result(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    record = _record(args[0])
    if isinstance(record, Record) and isinstance(args[1], str):
        found = interpreter.find_attribute(View(record, "ResolvedView"), args[1])
        value = (args[2] if len(args) > 2 else None) if found is MISSING else found
        fallback = interpreter.fallbacks.get(args[1])
        return lift(lambda one: fallback if one is None else one, value) if fallback is not None else value
    return Unknown(("record",))


def read_fallbacks(tree: Any) -> dict[str, Any]:
    """Return the values that stand in for a field nobody decided: ``Arg(fallback=…)`` in the field's annotation (0.5.19 on)."""
    if "fallbacks" not in tree.memo:
        tree.memo["fallbacks"] = dict(_fallbacks(tree))
    fallbacks: dict[str, Any] = tree.memo["fallbacks"]
    return fallbacks


def _fallbacks(tree: Any) -> Iterator[tuple[str, Any]]:
    for rel in ["srt/server_args.py", *tree.glob("srt/arg_groups/fields/")]:
        lines = [number for number, line in enumerate((tree.read(rel) or "").split("\n"), start=1) if "fallback=" in line]
        module = tree.module(rel) if lines else None
        classes = [one for one in module.body if isinstance(one, ast.ClassDef)] if module is not None else []
        for node in (one for cls in classes for one in fields(cls)):
            if isinstance(node.target, ast.Name) and any(node.lineno <= line <= (node.end_lineno or 0) for line in lines):
                for one in ast.walk(node.annotation):
                    if isinstance(one, ast.keyword) and one.arg == "fallback" and isinstance(one.value, ast.Constant):
                        yield node.target.id, one.value.value


def _record_of(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _record(args[0])


def _overlay(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    record = _record(args[0])
    return Dict(dict(record.decided.cells)) if isinstance(record, Record) else Unknown(("record",))


def _settle(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Write what was declared onto the record itself (0.5.15 … 0.5.18); where each value came from stays as declared."""
    record = _record(args[0])
    if not isinstance(record, Record):
        return Unknown(("record",))
    for dummy, declared in interpreter.declarations(record):
        for name, value in declared.cells.items():
            interpreter.write(record, name, value)
    interpreter.write(record, "_declarations_materialized", True)
    return None


def _invoke(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call the override of a model; that it returns a dict is the release's affair, not the command line's."""
    return interpreter.call(args[0], list(args[1:]), kwargs)


def _foreign(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A platform plugin's own defaults: without a plugin the built-in platform writes none."""
    record = _record(args[0])
    return interpreter.call(args[2], [View(record, "ResolvingConfig")], {})


def _fields(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return MISSING if not (args and isinstance(args[0], Class) and args[0] is interpreter.record_class) else List()


def _nothing(value: Any) -> Callable[..., Any]:
    return lambda interpreter, function, args, kwargs: value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "declare_resolution": _declare,
    "resolving_view": _view("ResolvingConfig"),
    "resolved_view": _view("ResolvedView"),
    "resolution_result": _result,
    "record_of": _record_of,
    "_declaration_overlay": _overlay,
    "record_foreign_defaults": _foreign,
    "_invoke_provider": _invoke,
    "materialize_declarations": _settle,
    "_apply_fields": _settle,
    "validate_declarations": _nothing(None),
    "record_fields": _fields,
    "is_record": _nothing(True),
}
CLASSES: dict[str, Callable[..., Any]] = {"ResolvedView": _view("ResolvedView"), "ResolvingConfig": _view("ResolvingConfig")}

__all__ = ["CLASSES", "FUNCTIONS", "SMEARED", "External", "leaf_at", "leaves"]
