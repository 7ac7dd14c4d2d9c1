# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The interpreter of one check: the source, what is known of host and model, and the hooks where that knowledge enters."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from ..conditions import text_of
from . import builtin
from .calls import Calls
from .limits import MAX_COPIED, MAX_WORK
from .methods import declare_all, method_of
from .modules import Loader
from .operators import lift, plain_enum
from .values import (
    MISSING,
    Class,
    Config,
    Dict,
    External,
    Function,
    Instance,
    List,
    Module,
    Native,
    OutOfBudget,
    Raised,
    Record,
    Stash,
    Unknown,
    View,
    needs_of,
    present,
)

if TYPE_CHECKING:
    from ..source import SourceTree
    from .knowledge import Knowledge
    from .visits import Visit

_QUOTED = re.compile(r"[\"'](\w+)[\"']")
# Functions registered as model overrides outside the folder that holds nothing else.
_REGISTERED = re.compile(
    r"^@(?:register_model_override\w*|_register_for)\b.*?^def .*?(?=^(?:@|def |class |\w+\s*[:=]|#)|\Z)", re.MULTILINE | re.DOTALL
)
_ENUMS = frozenset(
    {"Enum", "IntEnum", "StrEnum", "IntFlag", "Flag", "enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.IntFlag", "enum.Flag"}
)
# Where the views of the record are defined (0.5.14 … 0.5.18; 0.5.19 on).
VIEW_MODULES = ("sglang.srt.arg_groups.overrides", "sglang.srt.arg_groups.model_override_base")


# Bases from outside the source that bring a class no attributes it is asked for.
_CLOSED = _ENUMS | {"ABC", "Generic", "Protocol", "NamedTuple", "TypedDict", "Struct", "PretrainedConfig", "object"}


class Interpreter(Calls):
    """One run over one release for one command line."""

    def __init__(
        self,
        tree: SourceTree,
        knowledge: Knowledge,
        env: Mapping[str, str],
        budget_s: float,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__()
        self.loader = Loader(tree)
        self.knowledge = knowledge
        self.reads: set[str] = set()
        self.frames: list[Any] = []
        self.import_guards: list[Any] = []
        self.in_message = 0
        self.explicit: dict[str, str] = {}
        self.handling: list[Raised] = []
        self.call_sites: dict[str, Any] = {}
        self.leaf_sites: dict[tuple[int, str], Any] = {}
        self.environ = Dict(dict(env))
        self.watched: Collection[tuple[str, int]] = ()
        self.visits: list[Visit] = []
        self.record_class: Class | None = None
        self.architecture: str | None = None
        self.overridable: list[str] | None = None
        self.fallbacks: dict[str, Any] = {}
        self.clock = clock
        self.deadline = clock() + budget_s
        self.steps = 0
        self.copied = 0

    def tick(self) -> None:
        self.steps += 1
        if self.steps > MAX_WORK:
            raise OutOfBudget(f"not decided within {MAX_WORK:,} steps")
        if not self.steps & 511 and self.clock() > self.deadline:
            raise OutOfBudget

    def step(self) -> int:
        return self.steps

    def spend(self, items: int) -> None:
        """Account for items copied: what time alone would bound only after memory is full."""
        self.copied += items
        if self.copied > MAX_COPIED:
            raise OutOfBudget("what the source builds is too large to follow")

    def builtin(self, name: str) -> Any:
        return builtin.lookup(name)

    def builtin_method(self, value: Any, name: str) -> Any:
        if isinstance(value, type):
            return self._type_attribute(value, name)
        return method_of(value, name)

    def _type_attribute(self, kind: type, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return kind.__name__
        if name == "__setattr__":
            return Native(name, lambda i, a, k: i.set_attribute(a[0], a[1], a[2], frozenset(i.reads)))
        if name == "__getattribute__":
            return Native(name, lambda i, a, k: i.attribute(a[0], a[1]))
        if name == "fromkeys":
            return Native(name, lambda i, a, k: Dict(dict.fromkeys(i.iterate(a[0]) or (), a[1] if len(a) > 1 else None)))
        return Native(name, lambda i, a, k: i.call(i.attribute(a[0], name), list(a[1:]), k))

    def call_plain(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, type):
            return builtin.call_type(self, function, args, kwargs)
        raise Raised("TypeError", f"'{type(function).__name__}' object is not callable", self.here())

    def is_exception(self, kind: str, names: list[str]) -> bool:
        return builtin.is_exception(kind, names)

    def smeared_declaration(self, record: Any, value: Any) -> None:
        """Declarations that are not known (the model is not): every field a model's override may set becomes unknown."""
        needs = needs_of(value) or frozenset({"model.architectures"})
        for name in self._override_fields(record):
            old = record.decided.cells.get(name, record.cells.get(name))
            open_value = Unknown(needs | needs_of(old))
            self.decide(record, name, open_value, self.site(self.frames[-1], None, None))

    def view_class(self, view: View) -> Any:
        """Return the class a view of the record is of in the source."""
        for dotted in VIEW_MODULES:
            module = self.loader.module(dotted)
            cls = self.module_name(module, view.kind) if module is not None else MISSING
            if isinstance(cls, Class):
                return cls
        return Unknown(("type",))

    def replace_declarations(self, record: Record, new: Any) -> None:
        """Take a new list of declarations in place of all made so far."""
        if isinstance(new, Stash):
            return
        for name in list(record.decided.cells):
            self.write(record.decided, name, MISSING)
        declare_all(self, Stash(record), new)

    @staticmethod
    def declarations(record: Record) -> list[Any]:
        """Return what was declared so far as one declaration: (who, {field: value})."""
        cells, raw = record.decided.cells, record.cells
        declared = Dict({name: present(held, raw.get(name, MISSING)) for name, held in cells.items()})
        declared.sites = {name: places[-1] for name in cells if (places := record.origin.cells.get(name))}
        return [("declared", declared)] if cells else []

    def _override_fields(self, record: Any) -> list[str]:
        """Return the fields named in the files of model overrides: by text, so rather too many than too few."""
        if self.overridable is None:
            tree = self.loader.tree
            words: set[str] = tree.memo.get("overridable") or set()
            for rel in () if words else tree.glob("srt/arg_groups/"):
                text = tree.read(rel) or ""
                parts = [text] if "/model_overrides/" in rel else _REGISTERED.findall(text)
                for part in parts:
                    words.update(_QUOTED.findall(part))
            tree.memo["overridable"] = words
            self.overridable = [name for name in record.cells if name in words and not name.startswith("_")]
        return self.overridable

    # Where knowledge enters.
    def known_name(self, module: Module, name: str) -> Any:
        if name == self.knowledge.record_name and self.record_class is not None and module.name.endswith("server_args"):
            return self.record_class
        return self.knowledge.name(self, module, name)

    def known_function(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if function.cls is not None:
            return MISSING
        run = self.knowledge.functions.get(function.name)
        return MISSING if run is None else run(self, function, args, kwargs)

    def known_class(self, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        run = self.knowledge.classes.get(cls.name)
        if run is not None:
            return run(self, cls, args, kwargs)
        if cls.base_names() & _ENUMS:
            return lift(lambda value: self._enum_by_value(cls, value), args[0])
        return MISSING

    def external(self, name: str) -> Any:
        return self.knowledge.external(self, name)

    def external_attribute(self, value: External, name: str) -> Any:
        return self.external(f"{value.name}.{name}")

    def has_external(self, value: External, name: str) -> Any:
        return self.knowledge.has_external(self, value.name, name)

    def call_external(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self.knowledge.call_external(self, name, args, kwargs)

    def importable(self, name: str) -> Any:
        return self.knowledge.importable(self, name)

    def config_attribute(self, value: Config, name: str) -> Any:
        return self.knowledge.config_attribute(self, value, name)

    def has_config(self, value: Config, name: str) -> Any:
        found = self.config_attribute(value, name)
        return Unknown(found.needs) if isinstance(found, Unknown) else found is not MISSING

    # Enumerations and other classes whose attributes are more than their values.
    def class_value(self, cls: Class, name: str, value: Any) -> Any:
        # Not run as written: bodies are evaluated late here, when a "class body is over" switch would already be thrown.
        named = isinstance(value, Instance) and value.cls is not None and self.class_attribute(value.cls, "__set_name__")
        if isinstance(named, Function):
            value.cells["name"] = name
        if cls.base_names() & _ENUMS and not name.startswith("_") and not isinstance(value, (Function, Instance)):
            if isinstance(value, External) and value.name.endswith("auto()"):
                value = list(cls.bindings).index(name) + 1
            return Instance(cls, {"_value_": value, "_name_": name})
        return value

    def _members(self, cls: Class) -> list[Any]:
        out = []
        for name, statements in cls.bindings.items():
            if isinstance(statements[0], (ast.Assign, ast.AnnAssign)):
                member = self.class_attribute(cls, name)
                if isinstance(member, Instance) and member.cls is cls:
                    out.append(member)
        return out

    def _enum_by_value(self, cls: Class, value: Any) -> Any:
        if isinstance(value, Instance) and value.cls is cls:
            return value
        for member in self._members(cls):
            held = member.cells["_value_"]
            if isinstance(held, Unknown):
                return Unknown(held.needs)
            if held == plain_enum(value):
                return member
        raise Raised("ValueError", f"{self.show(value, quoted=True)} is not a valid {cls.name}", self.here())

    def enum_attribute(self, instance: Instance, name: str) -> Any:
        if name in ("__struct_fields__", "__dataclass_fields__") and instance.cls is not None:
            return self.enum_class_attribute(instance.cls, name)
        if "_value_" in instance.cells and instance.cls is not None:
            return method_of(plain_enum(instance), name) if not isinstance(plain_enum(instance), Instance) else MISSING
        if instance.cls is not None and self._inherits_openly(instance.cls):
            return Unknown((f"{instance.cls.name}.{name}",))
        return MISSING

    @staticmethod
    def _inherits_openly(heir: Class) -> bool:
        """Whether a class has a base whose attributes are not in the source."""
        for one in heir.mro():
            for base, node in zip(one.bases, one.node.bases, strict=True):
                name = text_of(node).partition("[")[0].rpartition(".")[2]
                outside = isinstance(base, (External, Unknown, type)) and base is not object
                if outside and name not in _CLOSED and not name.endswith(("Error", "Exception")):
                    return True
        return False

    def enum_class_attribute(self, cls: Class, name: str) -> Any:
        if name == "__members__" and cls.base_names() & _ENUMS:
            return Dict({one.cells["_name_"]: one for one in self._members(cls)})
        if name == "__dataclass_fields__" and self.is_record_class(cls):
            return Dict(dict.fromkeys(self.record_fields(cls)))
        if name == "__struct_fields__" and self.is_record_class(cls):
            return tuple(self.record_fields(cls))
        open_base = next((base for base in cls.bases if isinstance(base, (External, Unknown))), None)
        if open_base is not None and not cls.base_names() & _ENUMS:
            return Unknown((f"{cls.name}.{name}",))
        return MISSING

    def special_item(self, value: Any, index: Any) -> Any:
        if isinstance(value, Class) and value.base_names() & _ENUMS:
            member = self.class_attribute(value, index) if isinstance(index, str) else MISSING
            if member is MISSING:
                raise Raised("KeyError", self.show(index, quoted=True), self.here())
            return member
        if isinstance(value, Instance) and value.cls is not None:
            method = self.class_attribute(value.cls, "__getitem__")
            if isinstance(method, Function):
                return self.call_function(method, [value, index], {})
        if isinstance(value, range) and isinstance(index, int):
            return value[index]
        return Unknown((f"item of {getattr(value, 'name', type(value).__name__)}",))

    def special_iterate(self, value: Any) -> list[Any] | None:
        if isinstance(value, Stash):
            return self.declarations(value.record)
        if isinstance(value, Class) and value.base_names() & _ENUMS:
            return self._members(value)
        if isinstance(value, Instance) and isinstance(value.cells.get("args"), tuple):
            return list(value.cells["args"])
        return None


__all__ = ["Interpreter", "List"]
