# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Configuration classes that SGLang brings itself (srt/configs/*.py): their defaults complete what config.json leaves out."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .interpret.methods import from_native, to_native
from .interpret.values import MISSING, Class, Config, Instance, Raised, Unknown
from .outline import members

FOLDER = "srt/configs/"
# Longer files of the folder are SGLang's own settings of models, not configuration classes.
_SKIP = ("model_config.py", "load_config.py", "device_config.py")


def complete(interpreter: Any, config: Config, raw: Mapping[str, Any]) -> None:
    """Add to a configuration, and to those nested in it, the defaults of SGLang's own class for that model_type."""
    made = _instance(interpreter, raw)
    if made is not None:
        _merge(config, made)


def _merge(config: Config, made: Instance) -> None:
    config.complete = True
    for name, value in made.cells.items():
        held = config.cells.get(name, MISSING)
        if isinstance(held, Config) and isinstance(value, Instance) and value.cls is not None:
            _merge(held, value)
        elif not isinstance(value, (Unknown, Instance)) and (held is MISSING or _differs(held, value)):
            config.cells[name] = value


def _differs(held: Any, value: Any) -> bool:
    """Whether the class made something else of what config.json says: an architecture under its name in SGLang."""
    plain, other = to_native(held), to_native(value)
    return plain is not MISSING and other is not MISSING and bool(plain != other)


def _instance(interpreter: Any, raw: Mapping[str, Any]) -> Instance | None:
    cls = _class_of(interpreter, raw)
    if cls is None:
        return None
    made: list[Any] = []

    def run() -> None:
        try:
            made.append(interpreter.instantiate(cls, [], {name: from_native(value) for name, value in raw.items()}))
        except Raised:
            return

    interpreter.detached(run)
    return made[0] if made and isinstance(made[0], Instance) else None


def _class_of(interpreter: Any, raw: Mapping[str, Any]) -> Class | None:
    """Return the class that names this model_type; of several the one whose parameters config.json fills best."""
    kind = raw.get("model_type")
    if not isinstance(kind, str) or not kind:
        return None
    tree = interpreter.loader.tree
    best: tuple[int, Class] | None = None
    for rel in tree.glob(FOLDER):
        text = tree.read(rel) or ""
        if rel.endswith(_SKIP) or f'model_type = "{kind}"' not in text:
            continue
        module = interpreter.loader.module("sglang." + rel.removesuffix(".py").replace("/", "."))
        for name in sorted(interpreter.loader.names(module)) if module is not None else ():
            node = next((one for one in interpreter.loader.statements(module, name) if isinstance(one, ast.ClassDef)), None)
            if node is None or not _names(node, kind):
                continue
            cls = interpreter.module_name(module, name)
            fit = len(_parameters(node) & set(raw))
            if isinstance(cls, Class) and (best is None or fit > best[0]):
                best = (fit, cls)
    return best[1] if best else None


def _names(node: ast.ClassDef, kind: str) -> bool:
    return any(
        isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and one.value.value == kind
        for one in members(node).get("model_type", ())
    )


def _parameters(node: ast.ClassDef) -> set[str]:
    for one in members(node).get("__init__", ()):
        if isinstance(one, ast.FunctionDef):
            return {argument.arg for argument in [*one.args.args, *one.args.kwonlyargs]}
    return set()
